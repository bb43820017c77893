#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/bench/step_profile.h"
#include "engine/engine.h"

namespace afterglow {

/// Tokens to compute behind `depth` others: as one prompt, or one by one as
/// an answer is generated.
struct SpeedTest {
  bool generates = false;
  std::size_t tokens = 0;
  std::size_t depth = 0;

  /// "pp512", "tg64@3000".
  std::string name() const;
};

/// What is loaded, and how.
struct SpeedSetup {
  std::string model;
  Backend backend = Backend::kCpu;
  Activations activations = Activations::kInt16;
  int threads = 1;
};

struct SpeedOptions {
  std::vector<SpeedTest> tests;
  int repetitions = 5;
  bool profile = true;  // each test once more, with kernels that count
};

struct SpeedFigures {
  SpeedTest test;
  std::vector<double> tokens_per_second;  // one a repetition
  std::optional<StepProfile> profile;     // of the CPU's kernels

  double mean() const;
  /// Of the sample; 0 for a single one.
  double deviation() const;
};

struct SpeedReport {
  SpeedSetup setup;
  std::string model_name;
  std::string quantization;
  std::string arithmetic;  // the backend's: "cpu int16"
  std::string target;      // instruction set; empty: not the CPU's kernels
  std::uint64_t file_bytes = 0;
  std::uint64_t parameters = 0;
  double load_seconds = 0;
  std::uint64_t peak_memory = 0;  // of loading and the tests; 0: unknown
  double memory_speed = 0;        // measured, bytes a second
  std::vector<SpeedFigures> figures;
};

/// Loads the model, warms up and runs the tests on random tokens of a fixed
/// seed, in steps of the sizes that the scheduler takes.
/// Errors: of loading; kInvalidArgument for a test beyond the model's context.
/// Thread: loads and computes on the calling thread.
Result<SpeedReport> measure_speed(
    const SpeedSetup& setup, const SpeedOptions& options
);

}  // namespace afterglow
