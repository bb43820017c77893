#include "store/context.h"

#include <spdlog/spdlog.h>

#include "store/disk_files.h"
#include "store/names.h"

namespace afterglow {

StoreContext::StoreContext(
    std::unique_ptr<FileSystem> file_system,
    StoreOptions store_options,
    PromptCache& prompt_cache,
    PagePool& page_pool
)
    : files(std::move(file_system)),
      options(std::move(store_options)),
      key{options.fingerprint, options.spec, options.layout},
      folder(key.folder()),
      blocks(names::blocks(folder)),
      cache(prompt_cache),
      pool(page_pool) {}

std::string StoreContext::file_of(const BlockId& id) const {
  return block_path(folder, id);
}

StoreStats StoreContext::stats() const {
  std::lock_guard guard(mutex_);
  return stats_;
}

void StoreContext::reading_failed(const Error& error) {
  constexpr std::chrono::minutes kLogEvery{1};
  auto now = std::chrono::steady_clock::now();
  bool is_due = false;
  count([&](StoreStats& stats) {
    ++stats.read_errors;
    auto [last, is_first] = read_errors_logged_.try_emplace(error.code, now);
    is_due = is_first || now - last->second >= kLogEvery;
    last->second = is_due ? now : last->second;
  });
  if (is_due) {
    spdlog::warn(
        "[store.read] a block is computed again instead: {}", error.message
    );
  }
}

void StoreContext::writing_failed(const Error& error) {
  bool changed = false;
  count([&](StoreStats& stats) {
    changed = stats.writing;
    stats.writing = false;
    stats.last_error = error.message;
  });
  if (changed) {
    spdlog::warn(
        "[store.write] the prompt cache is not written to disk for now, "
        "prompts are served from memory: {}",
        error.message
    );
  }
}

void StoreContext::writing_works() {
  bool changed = false;
  count([&](StoreStats& stats) {
    changed = !stats.writing;
    stats.writing = true;
    stats.last_error.clear();
  });
  if (changed) {
    spdlog::info("[store.write] the prompt cache is written to disk again");
  }
}

}  // namespace afterglow
