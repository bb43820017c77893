#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/duration_histogram.h"
#include "engine/request.h"

namespace afterglow {

/// What was done since the start.
struct EngineCounters {
  std::array<std::uint64_t, kFinishReasons> finished{};  // by FinishReason
  std::uint64_t failed = 0;                              // requests

  std::uint64_t generated_tokens = 0;
  std::uint64_t computed_prompt_tokens = 0;
  std::uint64_t ram_prompt_tokens = 0;   // not computed: found in memory
  std::uint64_t disk_prompt_tokens = 0;  // not computed: read from disk
  std::uint64_t ram_hits = 0;            // requests that reused tokens so
  std::uint64_t disk_hits = 0;

  /// Requests whose prompt was restored and then computed nevertheless, and
  /// how many of their tokens were.
  std::uint64_t recomputed_requests = 0;
  std::uint64_t recomputed_tokens = 0;

  DurationHistogram queued;       // of those that were begun
  DurationHistogram first_token;  // from arrival; of those that had one
  DurationHistogram request;      // from arrival to the end; of all

  /// Time to compute a prompt token, measured lately; 0: not yet.
  double prefill_seconds_per_token = 0;
  /// An estimate: tokens not computed, each times what one cost then.
  double prefill_seconds_saved = 0;
};

}  // namespace afterglow
