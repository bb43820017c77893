#include "engine/history_file.h"

#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/file_system.h"
#include "base/utf8.h"

namespace afterglow {
namespace {

class PageSource : public KvSource {
 public:
  explicit PageSource(const KvHistory& history) : history_(history) {}

  Result<Part> read(std::size_t block, std::size_t layer) override {
    const Page& page = *history_.pages[block];
    const KvLayout& layout = history_.layout;
    auto part = [&](std::size_t offset, std::size_t bytes) {
      return std::span<const std::byte>(page.data() + offset, bytes);
    };
    return Part{
        part(
            layout.k_offset(layer, kPageTokens),
            layout.k_bytes(layer, kPageTokens)
        ),
        part(
            layout.v_offset(layer, kPageTokens),
            layout.v_bytes(layer, kPageTokens)
        ),
        kPageTokens};
  }

 private:
  const KvHistory& history_;
};

Error wrong(const std::string& what) {
  return {Code::kInvalidArgument, "[cache.save] " + what};
}

Status check(const KvHistory& history, const MlxCacheNotes& notes) {
  if (history.tokens.empty()) {
    return wrong("the cache history is empty");
  }
  for (const auto& [name, value] : notes) {
    if (name.starts_with(kMlxStampPrefix)) {
      return wrong(
          "metadata '" + name + "': names that begin with '" +
          std::string(kMlxStampPrefix) + "' are the format's own"
      );
    }
    if (!is_utf8(name) || !is_utf8(value)) {
      return wrong("metadata '" + name + "' is not valid UTF-8");
    }
  }
  return {};
}

}  // namespace

Status save_history(
    const std::string& path,
    const KvHistory& history,
    const MlxCacheNotes& notes
) {
  if (Status fine = check(history, notes); !fine.ok()) {
    return fine;
  }
  MlxCacheStamp stamp{
      history.origin.fingerprint, history.origin.spec, history.tokens};
  return replace_user_file(path, [&](File& file) {
    PageSource source(history);
    return write_mlx_cache_file(file, history.layout, stamp, notes, source);
  });
}

Result<LoadedHistory> load_history(const std::string& path) {
  auto file = MlxCacheFile::open(path);
  if (!file.ok()) {
    return file.error();
  }
  KvHistory history;
  history.layout = file->layout();
  history.tokens.assign(file->tokens(), kUnknownToken);
  if (file->stamp()) {
    history.origin = {file->stamp()->fingerprint, file->stamp()->spec};
    history.tokens = file->stamp()->tokens;
  }
  PagePool pool(history.layout.page_bytes());
  std::vector<std::shared_ptr<Page>> pages;
  for (std::size_t at = 0; at < history.tokens.size(); at += kPageTokens) {
    pages.push_back(pool.make());
    std::memset(pages.back()->data(), 0, pages.back()->size());
  }
  if (Status read = file->read(history.layout, pages); !read.ok()) {
    return read.error();
  }
  history.pages.assign(pages.begin(), pages.end());
  LoadedHistory loaded;
  for (const auto& note : file->header().metadata) {
    if (!note.first.starts_with(kMlxStampPrefix)) {
      loaded.notes.push_back(note);
    }
  }
  loaded.history = std::make_shared<const KvHistory>(std::move(history));
  return loaded;
}

}  // namespace afterglow
