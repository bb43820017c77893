#include "afterglow/cache_history.h"

#include <utility>

#include "api/history_state.h"
#include "api/raise.h"
#include "engine/history_file.h"

namespace afterglow {
CacheHistory::CacheHistory(std::shared_ptr<const HistoryState> state)
    : state_(std::move(state)) {}

std::size_t CacheHistory::size() const {
  return state_->get()->tokens.size();
}

std::vector<Token> CacheHistory::tokens() const {
  return state_->get()->tokens;
}

std::uint64_t CacheHistory::bytes() const {
  const KvHistoryPtr history = state_->get();
  return history->pages.size() * history->layout.page_bytes();
}

void save_cache(
    const std::string& filename,
    const CacheHistory& history,
    const Metadata& metadata
) {
  require(save_history(
      filename, *history.state()->get(), {metadata.begin(), metadata.end()}
  ));
}

std::pair<CacheHistory, Metadata> load_cache(const std::string& filename) {
  LoadedHistory loaded = require(load_history(filename));
  const std::size_t length = loaded.history->tokens.size();
  return {
      CacheHistory(std::make_shared<const HistoryState>(
          std::move(loaded.history), length
      )),
      Metadata(loaded.notes.begin(), loaded.notes.end())};
}

}  // namespace afterglow
