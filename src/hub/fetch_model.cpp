#include "hub/fetch_model.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>

#include "text/textkit_util.h"

namespace afterglow {
namespace {

constexpr char kOperation[] = "hub.fetch";

/// True for what can only be meant as a path.
bool looks_like_path(const std::string& name) {
  const std::string repository = name.substr(0, name.find(':'));
  const bool has_part = repository.size() < name.size();
  const auto slashes = std::ranges::count(repository, '/');
  return slashes != 1 || name.find_first_of("/.~") == 0 ||
         (name.ends_with(".gguf") && !has_part);
}

/// The hub does not give it: perhaps a path was meant, which is not there.
Error with_hint(Error error, const std::string& name) {
  const bool path = name.find(':') == std::string::npos;
  const bool refused = error.code == Code::kNotFound ||
                       error.code == Code::kPermission ||
                       error.code == Code::kUnavailable;
  if (path && refused) {
    error.message += "; and there is no file or folder '" + name + "' here";
  }
  return error;
}

/// What tk_hub_fetch calls back to. Nothing may unwind through the crate.
struct Watcher {
  const FetchOptions& options;
  std::exception_ptr thrown;

  static bool report(
      void* context, tk_view file, std::uint64_t done, std::uint64_t total
  ) noexcept {
    auto& watcher = *static_cast<Watcher*>(context);
    if (watcher.options.cancel.stop_requested()) return false;
    if (!watcher.options.progress) return true;
    try {
      watcher.options.progress({textkit::view(file), done, total});
    } catch (...) {
      watcher.thrown = std::current_exception();
    }
    return watcher.thrown == nullptr;
  }
};

}  // namespace

Result<std::string> fetch_model(
    const std::string& name, const FetchOptions& options
) {
  std::error_code error;
  if (std::filesystem::exists(name, error)) return name;
  if (looks_like_path(name)) {
    if (error) return name;  // it may be there: opening it says what is wrong
    return Error{
        Code::kNotFound,
        "[hub.fetch] there is no file or folder '" + name +
            "'. Models of the Hugging Face hub are named organization/name"};
  }
  Watcher watcher{options, nullptr};
  tk_buffer path{};
  tk_buffer message{};
  const tk_code code = tk_hub_fetch(
      textkit::view(name),
      textkit::view(options.revision),
      options.refresh,
      options.local_only,
      &Watcher::report,
      &watcher,
      &path,
      &message
  );
  if (code == TK_OK) return textkit::take(path);
  Error failed = textkit::take_error(kOperation, code, message);
  if (watcher.thrown) std::rethrow_exception(watcher.thrown);
  return with_hint(std::move(failed), name);
}

}  // namespace afterglow
