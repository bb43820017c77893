#include "cli/chat/line_history.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>

#include "base/file_system.h"

namespace afterglow {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// One line of the file; empty for text that is not UTF-8.
std::string encoded(const std::string& line) {
  try {
    return nlohmann::json(line).dump() + "\n";
  } catch (const nlohmann::json::type_error&) {
    return {};
  }
}

void make_folders(const fs::path& folder) {
  std::error_code unknown;  // what cannot be looked at cannot be opened either
  if (folder.empty() || fs::exists(folder, unknown)) return;
  if (folder == folder.parent_path()) return;
  make_folders(folder.parent_path());
  ::mkdir(folder.c_str(), 0700);
}

}  // namespace

std::string default_history_file() {
  std::string state = environment("XDG_STATE_HOME");
  if (!state.starts_with('/')) {
    const std::string home = environment("HOME");
    if (home.empty()) return {};
    state = home + "/.local/state";
  }
  return state + "/afterglow/chat_history";
}

std::vector<std::string> LineHistory::read(std::size_t most) {
  std::vector<std::string> lines;
  if (file_.empty()) return lines;
  std::ifstream in(file_, std::ios::binary);
  for (std::string text; std::getline(in, text);) {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (json.is_string()) lines.push_back(json.get<std::string>());
  }
  if (lines.size() <= most) return lines;
  const bool cut = lines.size() >= 2 * most;
  lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(most));
  if (cut) {
    std::string all;
    for (const std::string& line : lines) all += encoded(line);
    [[maybe_unused]] const Status replaced =
        replace_user_file(file_, [&](File& file) {
          return file.write_at(0, std::as_bytes(std::span(all)));
        });
  }
  return lines;
}

void LineHistory::add(const std::string& line) {
  const std::string text = encoded(line);
  if (file_.empty() || text.empty()) return;
  make_folders(fs::path(file_).parent_path());
  const int fd = ::open(
      file_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600
  );
  if (fd < 0) return;
  [[maybe_unused]] const auto written = ::write(fd, text.data(), text.size());
  ::close(fd);
}

}  // namespace afterglow
