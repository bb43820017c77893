#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include "base/memory_speed.h"
#include "base/thread_pool.h"
#include "kernels/dispatch/kernel_table.h"

namespace afterglow::bench {

/// What one run of a kernel does, and which limit of the machine it could
/// reach at best.
struct Work {
  enum class Limit { kCache, kMemory, kFloats, kBytes };

  double bytes = 0;  // read and written
  double operations = 0;
  /// kCache: data stay in caches and little is computed: no limit is measured.
  /// kFloats, kBytes: of f32 fma, or of products of bytes.
  Limit limit = Limit::kCache;
};

/// Registers benchmarks with Google Benchmark and gives them the limits of the
/// machine, measured in the same run.
class Suite {
 public:
  explicit Suite(int threads);

  ThreadPool& pool() { return pool_; }

  using Run = std::function<void()>;
  /// Measures what `prepare` returns, under "<target>/<name>". With one thread
  /// it is processor time that counts, which other programs disturb less.
  void add(
      const Kernels& kernels,
      const std::string& name,
      const Work& work,
      std::function<Run()> prepare
  );

  /// What the machine can do, on standard error.
  void print_limits() const;

 private:
  struct Peaks {
    double floats = 0;  // operations a second
    double bytes = 0;
  };

  double measure(double (*loop)(std::size_t));
  double limit_seconds(const std::string& target, const Work& work) const;
  const Run& prepared(std::size_t id, const std::function<Run()>& prepare);

  ThreadPool pool_;
  double memory_speed_;
  std::map<std::string, Peaks> peaks_;
  std::size_t count_ = 0;
  std::size_t prepared_id_ = 0;  // 0: none
  Run prepared_;
};

/// All tables of this machine, in calls to `add(kernels)`.
void for_each_target(const std::function<void(const Kernels&)>& add);

// One file each.
void add_elementwise(Suite& suite);  // exp, tanh, add, softcap, gates, to_half
void add_rows(Suite& suite);         // rms_norm, rope, quantize
void add_linear(Suite& suite);       // linear_int, linear_f32
void add_attention(Suite& suite);    // attend_page, attend_add, attend_finish
void add_sampling(Suite& suite);     // argmax, exp_sum

}  // namespace afterglow::bench
