#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace afterglow {

/// What a prompt cache on disk costs and gives, measured with a store of
/// random KV in the shape of SmolLM2-135M's: 30 layers of 3 heads of 64 in
/// f16, 5.9 MB a block. No model is loaded and nothing computed.
struct RestoreBenchOptions {
  std::string directory;    // a folder of its own is made in it and removed
  std::size_t blocks = 48;  // of the prompt that is restored
  std::uint64_t start_bytes = 0;  // blocks on disk besides, for the start
  int rounds = 5;
  int io_threads = 2;
};

struct RestoreBenchReport {
  std::uint64_t prompt_bytes = 0;
  std::uint64_t stored_bytes = 0;  // all block files
  std::uint64_t stored_blocks = 0;
  // Gigabytes a second, one figure a round; writes are synced.
  double write = 0;
  std::vector<double> warm;  // restored from the page cache
  std::vector<double> cold;  // restored after the page cache was dropped
  std::vector<double> disk;  // the same files, cold, with plain reads
  // Seconds, one figure a round.
  std::vector<double> open;   // until requests can be served
  std::vector<double> index;  // until all files are known
  std::string cold_note;      // why cold figures are missing
};

/// Rounds measure disk, cold and warm one after the other.
/// Errors: of the file system; kNoSpace when the blocks do not fit.
Result<RestoreBenchReport> run_restore_bench(const RestoreBenchOptions& options
);

}  // namespace afterglow
