#pragma once

#include <string>

#include "base/result.h"
#include "engine/kv_history.h"
#include "store/mlx_cache_file.h"

namespace afterglow {

/// Writes a history as a prompt-cache file that mlx_lm opens, stamped with
/// tokens, origin and sums. `path` is replaced when all is written and synced.
/// Errors: kInvalidArgument for an empty history, for notes under a name of
/// the stamp ("afterglow...") or that are not UTF-8; the file system's.
Status save_history(
    const std::string& path,
    const KvHistory& history,
    const MlxCacheNotes& notes
);

struct LoadedHistory {
  KvHistoryPtr history;
  MlxCacheNotes notes;  // the stamp's left out
};

/// Reads such a file, or one of mlx_lm, whose tokens are unknown and whose
/// origin is empty; verifies structure and sums. KV keeps the file's types.
/// Errors: those of MlxCacheFile.
Result<LoadedHistory> load_history(const std::string& path);

}  // namespace afterglow
