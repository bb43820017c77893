#include "kernels/bench/suite.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <vector>

#include "kernels/bench/peak.h"
#include "kernels/dispatch/dispatch.h"

namespace afterglow::bench {
namespace {

std::vector<Peak>& peaks() {
  static std::vector<Peak> all;
  return all;
}

double seconds(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

bool register_peak(const Peak& peak) {
  peaks().push_back(peak);
  return true;
}

const Peak* find_peak(const std::string& target) {
  for (const Peak& peak : peaks()) {
    if (peak.target == target) return &peak;
  }
  return nullptr;
}

void for_each_target(const std::function<void(const Kernels&)>& add) {
  for (const Kernels* kernels : available_kernels()) add(*kernels);
}

Suite::Suite(int threads)
    : pool_(threads), memory_speed_(MemorySpeed(pool_).measure()) {
  for_each_target([this](const Kernels& kernels) {
    if (const Peak* peak = find_peak(kernels.name)) {
      peaks_[kernels.name] = {
          measure(peak->float_fma), measure(peak->byte_dot)};
    }
  });
}

double Suite::measure(double (*loop)(std::size_t)) {
  constexpr int kPasses = 9;
  constexpr std::size_t kRounds = 1'000'000;
  const clockid_t clock =
      pool_.threads() == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const auto blocks = static_cast<std::size_t>(8 * pool_.threads());
    std::atomic<double> operations{0};
    const double start = seconds(clock);
    pool_.run(blocks, [&](std::size_t, int) {
      operations.fetch_add(loop(kRounds / 8));
    });
    best = std::max(best, operations.load() / (seconds(clock) - start));
  }
  return best;
}

double Suite::limit_seconds(const std::string& target, const Work& work) const {
  const double memory = work.bytes / memory_speed_;
  const auto peak = peaks_.find(target);
  if (peak == peaks_.end()) return 0;
  switch (work.limit) {
    case Work::Limit::kCache:
      return 0;
    case Work::Limit::kMemory:
      return memory;
    case Work::Limit::kFloats:
      return std::max(memory, work.operations / peak->second.floats);
    case Work::Limit::kBytes:
      return std::max(memory, work.operations / peak->second.bytes);
  }
  return 0;
}

const Suite::Run& Suite::prepared(
    std::size_t id, const std::function<Run()>& prepare
) {
  // Google Benchmark calls a benchmark several times in a row.
  if (prepared_id_ != id) {
    prepared_ = nullptr;
    prepared_ = prepare();
    prepared_id_ = id;
  }
  return prepared_;
}

void Suite::add(
    const Kernels& kernels,
    const std::string& name,
    const Work& work,
    std::function<Run()> prepare
) {
  const std::size_t id = ++count_;
  const std::string target = kernels.name;
  auto* registered = benchmark::RegisterBenchmark(
      (target + "/" + name).c_str(),
      [this, id, target, work, prepare = std::move(prepare)](
          benchmark::State& state
      ) {
        const Run& run = prepared(id, prepare);
        for (auto _ : state) run();
        using benchmark::Counter;
        constexpr auto kRate = Counter::kIsIterationInvariantRate;
        if (work.bytes > 0) {
          state.counters["GB/s"] = Counter(work.bytes / 1e9, kRate);
        }
        if (work.operations > 0) {
          state.counters["GFLOP/s"] = Counter(work.operations / 1e9, kRate);
        }
        if (const double limit = limit_seconds(target, work); limit > 0) {
          state.counters["%_of_limit"] = Counter(100 * limit, kRate);
        }
      }
  );
  if (pool_.threads() > 1) registered->UseRealTime();
}

void Suite::print_limits() const {
  std::fprintf(
      stderr,
      "%d thread(s): memory read %.1f GB/s",
      pool_.threads(),
      memory_speed_ / 1e9
  );
  for (const auto& [target, peak] : peaks_) {
    std::fprintf(
        stderr,
        "; %s f32 fma %.0f GFLOP/s, products of bytes %.0f GOP/s",
        target.c_str(),
        peak.floats / 1e9,
        peak.bytes / 1e9
    );
  }
  std::fprintf(stderr, "\n");
}

}  // namespace afterglow::bench
