#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/cache_directory.h"

namespace afterglow {

/// A block file with something wrong.
struct BadBlock {
  std::string folder;
  BlockId id;
  std::uint64_t bytes = 0;
  Error error{Code::kCorrupt, {}};
};

/// An entry that lost its end, or all of it, to a bad or missing block.
struct LostTokens {
  EntryRecord record;
  std::string model;     // its name
  std::size_t kept = 0;  // tokens that can still be reused
  BlockId block;         // the first that is bad or missing
  bool is_missing = false;
};

struct VerifyReport {
  std::uint64_t blocks = 0;  // read whole
  std::uint64_t bytes = 0;
  double seconds = 0;
  /// Wrong after two complete reads. Servers take them for misses.
  std::vector<BadBlock> corrupt;
  /// That could not be read now, or are of a format this build does not know.
  std::vector<BadBlock> unreadable;
  /// Whole, but a block before them is missing or corrupt.
  std::vector<BadBlock> orphans;
  std::vector<LostTokens> lost;
  /// The manifest is damaged or of a later version.
  std::optional<Error> manifest_error;
  std::size_t dead_temporaries = 0;  // files left by writers that died
  std::uint64_t counted_bytes = 0;   // of block files, by their names
  /// What the lock file says they take; none when it was never counted.
  std::optional<std::uint64_t> lock_bytes;
  // With repair:
  std::uint64_t removed_blocks = 0;
  std::uint64_t removed_temporaries = 0;
  /// Why something could not be repaired.
  std::vector<Error> failures;

  /// Whether something was lost that was promised; the rest mends itself.
  bool is_damaged() const {
    return !corrupt.empty() || !unreadable.empty() || manifest_error;
  }
};

struct VerifyOptions {
  /// Unlinks corrupt blocks and dead temporaries, and corrects the manifest
  /// and the count in the lock.
  bool repair = false;
  /// Called after each block with the bytes done and those there are.
  std::function<void(std::uint64_t, std::uint64_t)> progress;
};

/// Reads every block whole and checks header, sums, id, layout and the chain
/// to its parent. Safe while servers run; what vanishes meanwhile is left out.
Result<VerifyReport> verify_cache(
    CacheDirectory& directory, const VerifyOptions& options
);

}  // namespace afterglow
