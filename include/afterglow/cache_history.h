#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "afterglow/export.h"
#include "afterglow/types.h"

namespace afterglow {

/// @cond
class HistoryState;
/// @endcond

/// Tokens and their KV: what a generation has read and written. A value:
/// continuing it twice gives two independent continuations, which share its
/// memory, as copies of it do. It may outlive its model. Of a generation that
/// still runs it is what that had when the history was given out, which is
/// asked of it when a member is called first.
/// Thread: const members from any thread.
class AFTERGLOW_API CacheHistory {
 public:
  /// How many tokens it holds.
  std::size_t size() const;
  /// Which ones; kUnknownToken where a file of mlx_lm did not say it.
  std::vector<Token> tokens() const;
  /// Bytes of the KV in memory, those shared with others included.
  std::uint64_t bytes() const;

  /// @cond
  // For the functions of this library.
  explicit CacheHistory(std::shared_ptr<const HistoryState> state);
  const std::shared_ptr<const HistoryState>& state() const { return state_; }
  /// @endcond

 private:
  std::shared_ptr<const HistoryState> state_;
};

/// Names and values that a file keeps for its user, in UTF-8.
using Metadata = std::map<std::string, std::string>;

/// Writes a history to one safetensors file, which mlx_lm's load_prompt_cache
/// opens, too. The file is replaced only when all is written and synced.
/// metadata: kept as it is; "model_id" is the field's name for the model.
/// mlx_lm.generate wants "model", its own name for it, and "tokenizer_config",
/// JSON such as "{}". Throws: kInvalidArgument for an empty history or for
/// names that begin with "afterglow.", the format's own; kIo, kNoSpace,
/// kPermission.
AFTERGLOW_API void save_cache(
    const std::string& filename,
    const CacheHistory& history,
    const Metadata& metadata = {}
);

/// Reads a file of save_cache, or one of mlx_lm's save_prompt_cache, and
/// verifies structure, sums and tokens. That a history is of a model is
/// checked where it is continued. Files of mlx_lm do not say which tokens they
/// hold: a prompt continues such a history instead of beginning like it.
/// Throws: kNotFound, kCorrupt, kUnsupported, kIo, naming the file.
AFTERGLOW_API std::pair<CacheHistory, Metadata> load_cache(
    const std::string& filename
);

}  // namespace afterglow
