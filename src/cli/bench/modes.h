#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/bench/restore_speed.h"
#include "engine/engine.h"

namespace afterglow {

// What `afterglow bench` can do. Each prints its result on standard output,
// or what went wrong on standard error, and returns the exit status.

/// How fast prompts are read and answers generated: all combinations.
struct SpeedFlags {
  std::vector<std::string> models;  // empty: the default one
  Backend backend = Backend::kCpu;
  std::vector<Activations> activations{Activations::kInt16};
  std::vector<int> threads{0};  // 0: one for each core
  std::vector<std::size_t> prompts{512};
  std::vector<std::size_t> answers{64};
  std::vector<std::size_t> depths{0};
  int repetitions = 5;
  bool skip_profile = false;
  bool show_profile = false;
};
int bench_speed(const SpeedFlags& flags, bool json);

/// How exact the activation modes are on a text.
struct PerplexityFlags {
  std::string file;  // UTF-8 text
  std::size_t window = 2048;
  std::size_t most_tokens = 0;  // 0: all
};
int bench_perplexity(
    const PerplexityFlags& flags, const SpeedFlags& model, bool json
);

/// What the disk cache gives.
int bench_restore(const RestoreBenchOptions& options, bool json);

/// The machine, and the kernels used on it.
int bench_info(bool json);

}  // namespace afterglow
