#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/kv_layout.h"
#include "base/page.h"
#include "base/result.h"
#include "base/token.h"
#include "engine/kv_check.h"
#include "engine/runner.h"
#include "kv/prompt_cache.h"
#include "store/mlx_cache_file.h"

namespace afterglow {

struct CacheImport {
  std::string path;
  /// Whose KV the file holds. None: the file says so itself, being one of
  /// ours.
  std::optional<std::vector<Token>> tokens;
  /// Compute all tokens again to compare, not a sample of them.
  bool check_all = false;
};

struct ImportedCache {
  EntryRecord entry;  // pinned
  /// The file is ours, of this model and these numerics, with right sums:
  /// its KV is as if computed here, and nothing needs to be computed again.
  bool is_own = false;
  KvDifference difference;
};

/// Takes prompt-cache files into the prompt cache of a running engine. Files
/// of ours with equal fingerprint and spec become part of the cache as any
/// prompt; all others lie below a root of their own (kImportedNamespace),
/// since their KV is not, to the bit, what would be computed here.
/// Thread: safe from any thread but the generation thread.
class CacheImporter {
 public:
  /// Runs a task on the generation thread: Scheduler::post.
  using Post = std::function<bool(std::function<void(Runner&)>)>;

  struct Model {
    Sha256Digest fingerprint{};
    Sha256Digest spec{};
    std::size_t vocab_size = 0;
    std::size_t context_length = 0;
    KvLayout layout;
    double rounding = 0;  // see kv_tolerance
  };

  /// Requires: the cache outlives the importer; pool is the runner's.
  CacheImporter(PromptCache& cache, PagePool pool, Model model, Post post);

  /// Checks the file and stores it, pinned; the caller flushes.
  /// Errors: those of MlxCacheFile; kInvalidArgument when the tokens are not
  /// those of the file or the KV is not this model's, naming the position;
  /// kExhausted when the cache has no room; kUnavailable once stopped.
  Result<ImportedCache> import(const CacheImport& request);

 private:
  Result<std::vector<Token>> tokens_of(
      const MlxCacheFile& file, const CacheImport& request
  ) const;
  Result<KvDifference> check(
      const MlxCacheFile& file,
      const std::vector<Token>& tokens,
      const std::vector<PagePtr>& pages,
      bool check_all
  ) const;
  Result<EntryRecord> store(
      const BlockId& root,
      const std::vector<Token>& tokens,
      const std::vector<PagePtr>& pages
  );

  PromptCache& cache_;
  PagePool pool_;
  const Model model_;
  const Post post_;
};

}  // namespace afterglow
