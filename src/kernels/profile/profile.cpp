#include "kernels/profile/profile.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>

#include "kernels/profile/kernel_list.h"
#include "kernels/profile/ticks.h"

namespace afterglow {
namespace {

/// Written by one thread, read by any.
class Sum {
 public:
  void add(std::uint64_t more) {
    value_.store(get() + more, std::memory_order_relaxed);
  }
  void clear() { value_.store(0, std::memory_order_relaxed); }
  std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

struct Counter {
  Sum calls, ticks, bytes, flops;
};
struct alignas(64) ThreadCounters {
  std::array<Counter, kKernelCount> kernels;
};

struct Work {
  double bytes = 0;
  double flops = 0;
};

template <class... Arguments>
Work work_of(const Arguments&...) {
  return {};
}

template <class Linear>
Work work_of_linear(const Linear& a) {
  const auto blocks = static_cast<double>(a.last_block - a.first_block);
  const auto rows = blocks * PackedMatrix::kRows;
  return {
      blocks * static_cast<double>(a.weight->row_block_bytes),
      2 * rows * static_cast<double>(a.weight->cols * a.tokens)};
}
Work work_of(const LinearInt& arguments) {
  return work_of_linear(arguments);
}
Work work_of(const LinearF32& arguments) {
  return work_of_linear(arguments);
}

Work work_of(const AttendPage& a) {
  std::int32_t first = a.last[0], last = 0, products = 0;
  for (std::size_t r = 0; r < a.rows; ++r) {
    if (a.first[r] >= a.last[r]) continue;
    first = std::min(first, a.first[r]);
    last = std::max(last, a.last[r]);
    products += a.last[r] - a.first[r];
  }
  const auto dims = static_cast<double>(a.k_dim + a.v_dim);
  return {
      std::max(0, last - first) * dims * (a.half ? 2 : 4), 2 * dims * products};
}

const Kernels* real_kernels = nullptr;

std::mutex& threads_mutex() {
  static std::mutex mutex;
  return mutex;
}
// Of all threads that ever ran a kernel; guarded by threads_mutex().
std::vector<std::shared_ptr<ThreadCounters>>& all_threads() {
  static std::vector<std::shared_ptr<ThreadCounters>> threads;
  return threads;
}

ThreadCounters& counters() {
  thread_local const std::shared_ptr<ThreadCounters> mine = [] {
    auto made = std::make_shared<ThreadCounters>();
    std::lock_guard lock(threads_mutex());
    all_threads().push_back(made);
    return made;
  }();
  return *mine;
}

/// Counts from its making to its end.
class Timer {
 public:
  Timer(Counter& counter, const Work& work) : counter_(counter) {
    counter.calls.add(1);
    if (work.bytes > 0) {
      counter.bytes.add(static_cast<std::uint64_t>(work.bytes));
      counter.flops.add(static_cast<std::uint64_t>(work.flops));
    }
    start_ = read_ticks();
  }
  ~Timer() { counter_.ticks.add(read_ticks() - start_); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  Counter& counter_;
  std::uint64_t start_;
};

template <std::size_t Index, class Function>
struct Timed;
template <std::size_t Index, class R, class... Arguments>
struct Timed<Index, R (*)(Arguments...)> {
  static R call(Arguments... arguments) {
    const Timer timer(counters().kernels[Index], work_of(arguments...));
    return (real_kernels->*std::get<Index>(kKernelList).function)(arguments...);
  }
};

template <std::size_t... Index>
void wrap_all(Kernels& table, std::index_sequence<Index...>) {
  auto wrap = [&table]<std::size_t I>() {
    constexpr auto kFunction = std::get<I>(kKernelList).function;
    using Function = std::remove_reference_t<decltype(table.*kFunction)>;
    table.*kFunction = Timed<I, Function>::call;
  };
  (wrap.template operator()<Index>(), ...);
}

template <std::size_t... Index>
std::array<const char*, kKernelCount> names(std::index_sequence<Index...>) {
  return {std::get<Index>(kKernelList).name...};
}

double measure_seconds_per_tick() {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const std::uint64_t ticks = read_ticks();
  auto now = start;
  while (now - start < std::chrono::milliseconds(20)) now = Clock::now();
  return std::chrono::duration<double>(now - start).count() /
         static_cast<double>(read_ticks() - ticks);
}

double seconds_per_tick() {
  static const double value = measure_seconds_per_tick();
  return value;
}

}  // namespace

const Kernels& profiled(const Kernels& real) {
  static Kernels table;
  real_kernels = &real;
  table = real;
  wrap_all(table, std::make_index_sequence<kKernelCount>{});
  return table;
}

std::vector<KernelTime> kernel_times() {
  const auto all = names(std::make_index_sequence<kKernelCount>{});
  std::vector<KernelTime> times;
  std::lock_guard lock(threads_mutex());
  for (std::size_t i = 0; i < kKernelCount; ++i) {
    KernelTime sum{.name = all[i]};
    for (const auto& thread : all_threads()) {
      const Counter& counter = thread->kernels[i];
      sum.calls += counter.calls.get();
      sum.seconds +=
          static_cast<double>(counter.ticks.get()) * seconds_per_tick();
      sum.bytes += static_cast<double>(counter.bytes.get());
      sum.flops += static_cast<double>(counter.flops.get());
    }
    if (sum.calls > 0) times.push_back(sum);
  }
  return times;
}

void reset_kernel_times() {
  std::lock_guard lock(threads_mutex());
  for (const auto& thread : all_threads()) {
    for (Counter& counter : thread->kernels) {
      counter.calls.clear();
      counter.ticks.clear();
      counter.bytes.clear();
      counter.flops.clear();
    }
  }
}

double profiling_cost() {
  constexpr int kCalls = 20000;
  Counter counter;
  const std::uint64_t start = read_ticks();
  for (int i = 0; i < kCalls; ++i) const Timer timer(counter, {});
  const std::uint64_t all = read_ticks() - start - counter.ticks.get();
  return static_cast<double>(all) * seconds_per_tick() / kCalls;
}

}  // namespace afterglow
