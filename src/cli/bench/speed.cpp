#include "cli/bench/speed.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <numeric>
#include <random>

#include "base/memory_size.h"
#include "base/memory_speed.h"
#include "base/thread_pool.h"
#include "engine/model_runner.h"
#include "engine/step_pacer.h"
#include "model/model.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/mlx/mlx_ops.h"

namespace afterglow {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kSeed = 20;
constexpr std::size_t kWarmUpPrompt = 256;
constexpr std::size_t kWarmUpAnswer = 8;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Result<std::unique_ptr<Ops>> make_ops(
    const SpeedSetup& setup, ThreadPool& pool, bool profiled
) {
  if (setup.backend == Backend::kMlx) return make_mlx_ops(pool);
  return profiled ? make_profiled_cpu_ops(pool, setup.activations)
                  : make_cpu_ops(pool, setup.activations);
}

/// A loaded model that computes what a test asks for.
class Bench {
 public:
  static Result<std::unique_ptr<Bench>> load(
      const SpeedSetup& setup, bool profiled
  ) {
    auto pool = std::make_unique<ThreadPool>(setup.threads);
    auto ops = make_ops(setup, *pool, profiled);
    if (!ops) return ops.error();
    auto model = load_model(setup.model, **ops);
    if (!model) return model.error();
    return std::unique_ptr<Bench>(
        new Bench(std::move(pool), std::move(*ops), std::move(*model))
    );
  }

  const LoadedModel& model() const { return model_; }
  const Ops& ops() const { return *ops_; }
  ThreadPool& pool() { return *pool_; }

  Status check(const SpeedTest& test) const {
    if (test.depth + test.tokens <= model_.context_length) return {};
    return Error{
        Code::kInvalidArgument,
        "[bench] test " + test.name() + " needs " +
            std::to_string(test.depth + test.tokens) +
            " tokens; the model's context has " +
            std::to_string(model_.context_length)};
  }

  Status warm_up() {
    const std::size_t context = model_.context_length;
    if (Status set = go_to(0); !set) return set;
    Status read = read_prompt(std::min(kWarmUpPrompt, context / 2));
    return read ? generate(std::min(kWarmUpAnswer, context / 2)) : read;
  }

  /// Seconds that the test takes; getting to its depth is not counted.
  Result<double> run(const SpeedTest& test) {
    if (Status set = go_to(test.depth); !set) return set.error();
    const auto start = Clock::now();
    Status done =
        test.generates ? generate(test.tokens) : read_prompt(test.tokens);
    if (!done) return done.error();
    return seconds_since(start);
  }

  Result<StepProfile> profile(const SpeedTest& test) {
    if (Status set = go_to(test.depth); !set) return set.error();
    begin_profile();
    auto seconds = run(test);
    if (!seconds) return seconds.error();
    return end_profile(test.tokens, pool_->threads(), *seconds);
  }

 private:
  Bench(
      std::unique_ptr<ThreadPool> pool,
      std::unique_ptr<Ops> ops,
      LoadedModel model
  )
      : pool_(std::move(pool)),
        ops_(std::move(ops)),
        model_(std::move(model)),
        runner_(*ops_, model_),
        logits_(model_.vocab_size),
        draw_(kSeed) {}

  /// A sequence of so many tokens: the last one's beginning where that is
  /// long enough.
  Status go_to(std::size_t depth) {
    if (kv_ == nullptr || depth == 0 || kv_->length() < depth) {
      kv_ = runner_.new_kv();
      return read_prompt(depth);
    }
    kv_->truncate(depth);
    return {};
  }

  std::vector<Token> random_tokens(std::size_t count) {
    std::vector<Token> tokens(count);
    for (Token& token : tokens) {
      token = static_cast<Token>(draw_() % model_.vocab_size);
    }
    return tokens;
  }

  /// As the scheduler reads a prompt that is alone: logits at its end only.
  Status read_prompt(std::size_t count) {
    const std::vector<Token> tokens = random_tokens(count);
    for (std::size_t at = 0; at < count;) {
      const std::size_t part = std::min(pacer_.budget(), count - at);
      const auto start = Clock::now();
      const bool last = at + part == count;
      Status done = step(std::span(tokens).subspan(at, part), last);
      if (!done) return done;
      pacer_.record(part, part, seconds_since(start));
      at += part;
    }
    return {};
  }

  Status generate(std::size_t count) {
    for (const Token token : random_tokens(count)) {
      if (Status done = step({&token, 1}, true); !done) return done;
    }
    return {};
  }

  Status step(std::span<const Token> tokens, bool wants_logits) {
    StepItem item{.kv = kv_.get(), .tokens = tokens};
    if (wants_logits) item.logits = logits_;
    return runner_.step({&item, 1}, never_);
  }

  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Ops> ops_;
  LoadedModel model_;
  ModelRunner runner_;
  StepPacer pacer_{StepPacer::Limits{}};
  std::vector<float> logits_;
  std::mt19937 draw_;
  std::unique_ptr<KvState> kv_;
  const std::atomic<bool> never_{false};
};

std::uint64_t weight_file_bytes(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return fs::file_size(path, ignored);
  std::uint64_t sum = 0;
  for (const auto& entry : fs::directory_iterator(path, ignored)) {
    if (entry.path().extension() == ".safetensors") {
      sum += entry.file_size(ignored);
    }
  }
  return sum;
}

Status run_tests(Bench& bench, int repetitions, SpeedReport& report) {
  if (Status warm = bench.warm_up(); !warm) return warm;
  for (SpeedFigures& figures : report.figures) {
    for (int i = 0; i < repetitions; ++i) {
      auto seconds = bench.run(figures.test);
      if (!seconds) return seconds.error();
      const auto tokens = static_cast<double>(figures.test.tokens);
      figures.tokens_per_second.push_back(tokens / *seconds);
    }
  }
  return {};
}

Status run_profiles(const SpeedSetup& setup, SpeedReport& report) {
  auto bench = Bench::load(setup, true);
  if (!bench) return bench.error();
  if (Status warm = (*bench)->warm_up(); !warm) return warm;
  for (SpeedFigures& figures : report.figures) {
    auto profile = (*bench)->profile(figures.test);
    if (!profile) return profile.error();
    figures.profile = std::move(*profile);
  }
  return {};
}

}  // namespace

std::string SpeedTest::name() const {
  std::string name = (generates ? "tg" : "pp") + std::to_string(tokens);
  return depth == 0 ? name : name + "@" + std::to_string(depth);
}

double SpeedFigures::mean() const {
  const auto count = static_cast<double>(tokens_per_second.size());
  return std::accumulate(
             tokens_per_second.begin(), tokens_per_second.end(), 0.0
         ) /
         count;
}

double SpeedFigures::deviation() const {
  if (tokens_per_second.size() < 2) return 0;
  const double middle = mean();
  double squares = 0;
  for (const double x : tokens_per_second) {
    squares += (x - middle) * (x - middle);
  }
  const auto count = static_cast<double>(tokens_per_second.size());
  return std::sqrt(squares / (count - 1));
}

Result<SpeedReport> measure_speed(
    const SpeedSetup& setup, const SpeedOptions& options
) {
  SpeedReport report{.setup = setup};
  const bool on_cpu = setup.backend == Backend::kCpu;
  if (on_cpu) {
    auto targets = cpu_targets();
    if (!targets) return targets.error();
    const auto used = std::ranges::find_if(*targets, &CpuTarget::used);
    report.target = used->name;
  }
  for (const SpeedTest& test : options.tests) {
    report.figures.push_back({.test = test});
  }
  reset_peak_memory();
  {
    const auto start = Clock::now();
    auto bench = Bench::load(setup, false);
    if (!bench) return bench.error();
    report.load_seconds = seconds_since(start);
    const LoadedModel& model = (*bench)->model();
    report.model_name = model.name;
    report.quantization = model.quantization;
    report.parameters = model.parameters;
    report.arithmetic = (*bench)->ops().describe();
    report.file_bytes = weight_file_bytes(setup.model);
    for (const SpeedTest& test : options.tests) {
      if (Status fits = (*bench)->check(test); !fits) return fits.error();
    }
    Status tested = run_tests(**bench, options.repetitions, report);
    if (!tested) return tested.error();
    report.peak_memory = peak_memory();
    report.memory_speed = MemorySpeed((*bench)->pool()).measure();
  }
  if (on_cpu && options.profile) {
    Status profiled = run_profiles(setup, report);
    if (!profiled) return profiled.error();
  }
  return report;
}

}  // namespace afterglow
