#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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
  /// Bytes that all processes together may write to the directory in one day
  /// (UTC), to spare an SSD; 0: no such bound.
  std::uint64_t daily_write_bytes = 0;
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

/// What a request wants from the disk.
struct RestoreRequest {
  BlockId root;
  std::vector<Token> prompt;
  Match match;
  /// Measured time to compute one token instead. A block that agrees with the
  /// prompt in part is read only when that saves more than the measured time
  /// to read a block; 0: it is always read.
  double seconds_per_token = 0;
  /// Called once.
  std::function<void(Restored)> done;
};

/// Block files that were unlinked, by the reason.
struct EvictedBlocks {
  std::uint64_t budget = 0;
  std::uint64_t expired = 0;
  std::uint64_t cleared = 0;
  std::uint64_t superseded = 0;

  std::uint64_t total() const {
    return budget + expired + cleared + superseded;
  }
};

struct StoreStats {
  std::uint64_t disk_limit_bytes = 0;
  std::uint64_t disk_used_bytes = 0;  // all models in the directory
  std::uint64_t written_blocks = 0;
  std::uint64_t written_bytes = 0;   // of blocks
  std::uint64_t manifest_bytes = 0;  // written besides
  std::uint64_t syncs = 0;           // of files and directories
  std::uint64_t write_failures = 0;
  std::uint64_t capped_blocks = 0;  // not written: daily_write_bytes
  std::uint64_t read_blocks = 0;
  std::uint64_t read_bytes = 0;
  double read_seconds = 0;        // reading and verifying, all threads summed
  std::uint64_t read_errors = 0;  // of blocks, without missing and corrupt ones
  std::uint64_t restores = 0;     // that had to look at the disk
  double restore_seconds = 0;     // of those, until they were answered
  std::uint64_t corrupt_blocks = 0;
  EvictedBlocks evicted_blocks;
  std::size_t indexed_blocks = 0;
  bool index_complete = false;
  bool writing = true;     // false: disk full, read-only or gone
  std::string last_error;  // why not
};

struct FlushReport {
  std::uint64_t durable_blocks = 0;  // that were sealed when flush was called
  std::uint64_t failed_blocks = 0;
  bool saved = false;     // the manifest, after that
  bool complete = false;  // false: the deadline passed first, or not saved
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
  /// prompt's names, into RAM, and calls done: at once, on this thread, when
  /// RAM has all there can be, else from an I/O thread. Stops at the first
  /// block that cannot be read or verified. Dates the last block's file.
  virtual void restore(RestoreRequest request) = 0;

  /// Makes everything sealed before the call durable, tails included, and
  /// writes the manifest. So with blocks that were used or pinned after others
  /// had removed their files; not with those that nobody used since.
  /// With a root the report counts blocks below it only.
  /// Thread: not the generation thread.
  virtual FlushReport flush(
      std::chrono::steady_clock::time_point deadline,
      const std::optional<BlockId>& root = {}
  ) = 0;

  /// Forgets and unlinks this model's blocks (with a root: those below it)
  /// and their entries, pinned ones included, but for what a request uses.
  /// Returns how many files went. Other processes keep what they have in RAM.
  /// Thread: not the generation thread.
  virtual Result<std::uint64_t> clear(const std::optional<BlockId>& root) = 0;

  /// Takes an entry that the cache has just removed out of the manifest, too,
  /// so that it does not come back where other entries keep its blocks.
  /// Thread: not the generation thread. Errors: the file system's.
  virtual Status forget(const EntryRecord& entry) = 0;

  /// 32 random bytes of the directory, made when missing: the key from which
  /// namespaces are derived. Thread: not the generation thread.
  /// Errors: kCorrupt when the file holds something else; those of the file
  /// system.
  virtual Result<std::string> namespace_secret() = 0;

  virtual StoreStats stats() const = 0;
};

}  // namespace afterglow
