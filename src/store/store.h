#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/hash.h"
#include "base/kv_layout.h"
#include "base/page.h"
#include "base/result.h"
#include "kv/prompt_cache.h"

namespace afterglow {

struct StoreOptions {
  Sha256Digest fingerprint{};
  Sha256Digest spec{};
  KvLayout layout;
  std::string model_name;  // for model.json: people read it
  /// 0: the smaller of 20 GiB and 10 % of the free space at first use.
  std::uint64_t disk_bytes = 0;
  int io_threads = 2;
  std::chrono::milliseconds tail_delay{1000};
};

/// What a restore brought into RAM.
struct Restored {
  /// Blocks with pages, from the first on, without holes.
  std::vector<PathBlock> path;
  /// Tokens of the prompt that path covers, exact to the token.
  std::size_t tokens = 0;
  /// Of those, how many had to be read from disk.
  std::size_t disk_tokens = 0;
  double seconds = 0;
};

struct StoreStats {
  std::uint64_t disk_limit_bytes = 0;
  std::uint64_t disk_used_bytes = 0;  // all models in the directory
  std::uint64_t written_blocks = 0;
  std::uint64_t written_bytes = 0;
  std::uint64_t syncs = 0;
  std::uint64_t write_failures = 0;
  std::uint64_t read_blocks = 0;
  std::uint64_t read_bytes = 0;
  double read_seconds = 0;
  std::uint64_t corrupt_blocks = 0;
  std::uint64_t evicted_blocks = 0;
  std::size_t indexed_blocks = 0;
  bool index_complete = false;
  bool writing = true;     // false: disk full, read-only or gone
  std::string last_error;  // why not
};

struct FlushReport {
  std::uint64_t durable_blocks = 0;  // that were sealed when flush was called
  std::uint64_t failed_blocks = 0;
  bool complete = false;  // false: the deadline passed first
};

/// The disk below a PromptCache: block files in a directory, written behind
/// and read ahead of the generation thread. Format and promises:
/// docs/block-format.md.
/// Thread: safe from any thread; owns a writer and I/O threads. A failure in
/// here is a miss or an uncached block, never a failed request.
class Store {
 public:
  /// Opens or creates the store and starts indexing in the background.
  /// Errors: when the directory cannot be used at all.
  static Result<std::unique_ptr<Store>> open(
      std::unique_ptr<FileSystem> files,
      StoreOptions options,
      PromptCache& cache,
      PagePool& pool
  );
  /// Stops without flushing; call flush first for a clean exit.
  virtual ~Store() = default;

  /// Brings the match's blocks, and any that follow them on disk under the
  /// prompt's names, into RAM; calls done once from an I/O thread (or at
  /// once). Stops at the first block that cannot be read or verified.
  virtual void restore(
      const BlockId& root,
      std::vector<Token> prompt,
      Match match,
      std::function<void(Restored)> done
  ) = 0;

  /// Makes everything sealed before the call durable, tails included, and
  /// writes the manifest. Thread: not the generation thread.
  virtual FlushReport flush(std::chrono::steady_clock::time_point deadline) = 0;

  virtual StoreStats stats() const = 0;
};

}  // namespace afterglow
