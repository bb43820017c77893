// Prints what the kernels reach on this machine, per target, beside memory
// bandwidth and peak arithmetic measured in the same run. Rounds interleave
// all measurements, and the best of each counts, since other programs take
// their turns.
//
// With one thread it counts processor time, which other programs disturb less.
//
//   kernels_bench [threads] [rounds] [only names that contain this]

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/dispatch/dispatch.h"
#include "kernels/half.h"
#include "kernels/testing/linear.h"
#include "kernels/testing/matrix.h"

namespace afterglow {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) * 1e-9;
}

struct Measurement {
  std::string name;
  double flops;
  double bytes;
  std::function<void()> run;
  double best = INFINITY;
};

void measure(Measurement& m, clockid_t clock) {
  auto start = Clock::now();
  int runs = 0;
  double best = INFINITY;
  do {
    double before = seconds(clock);
    m.run();
    best = std::min(best, seconds(clock) - before);
    ++runs;
  } while (Clock::now() - start < std::chrono::milliseconds(40) || runs < 2);
  m.best = std::min(m.best, best);
}

struct Shape {
  const char* name;
  std::size_t rows, cols;
  test::Format format;
};

// Copies of a weight that together exceed the last-level cache by far, so
// that decode reads memory as it does in a model.
struct Weights {
  std::vector<test::Packed> copies;
  std::size_t next = 0;
  std::size_t bytes = 0;

  const PackedMatrix& take() { return copies[next++ % copies.size()].matrix; }
};

class Bench {
 public:
  Bench(int threads, std::string filter)
      : pool_(threads), filter_(std::move(filter)) {}

  void add_memory() {
    constexpr std::size_t kBytes = 256 << 20;
    memory_ = AlignedBuffer(kBytes);
    std::memset(memory_.data(), 1, kBytes);
    measurements_
        .push_back({"memory read", 0, double{kBytes}, [this] {
                      constexpr std::size_t kBlock = 1 << 20;
                      pool_.run(kBytes / kBlock, [&](std::size_t block, int) {
                        auto* p = reinterpret_cast<const std::uint64_t*>(
                            memory_.data() + block * kBlock
                        );
                        std::uint64_t sum[8] = {};
                        for (std::size_t i = 0; i < kBlock / 8; i += 8) {
                          for (std::size_t k = 0; k < 8; ++k) {
                            sum[k] ^= p[i + k];
                          }
                        }
                        for (std::uint64_t s : sum) {
                          sink_.fetch_xor(s, std::memory_order_relaxed);
                        }
                      });
                    }});
  }

  void add_linear(const Shape& shape, std::size_t tokens) {
    auto weights = std::make_shared<Weights>();
    test::Random random(1);
    test::Matrix matrix =
        test::random_matrix(shape.format, shape.rows, shape.cols, random);
    weights->copies.push_back(test::pack(matrix.source));
    weights->bytes = weights->copies[0].buffer.size();
    std::size_t copies = tokens <= 8 ? (160u << 20) / weights->bytes + 1 : 1;
    for (std::size_t i = 1; i < copies; ++i) {
      test::Packed copy;
      copy.matrix = weights->copies[0].matrix;
      copy.buffer = AlignedBuffer(weights->bytes);
      std::memcpy(
          copy.buffer.data(), weights->copies[0].buffer.data(), weights->bytes
      );
      copy.matrix.data = copy.buffer.data();
      weights->copies.push_back(std::move(copy));
    }
    auto x =
        std::make_shared<std::vector<float>>(random.floats(tokens * shape.cols)
        );
    auto y = std::make_shared<std::vector<float>>(tokens * shape.rows);
    for (const Kernels* k : available_kernels()) {
      if (std::string(k->name) == "scalar") {
        continue;
      }
      if (shape.format.bits != 0) {
        for (std::int32_t levels : {kInt8Levels, kInt16Levels}) {
          add_int(*k, shape, tokens, levels, weights, x, y);
        }
      }
      if (shape.rows < 10000) {
        add_f32(*k, shape, tokens, weights, x, y);
      }
    }
  }

  void add_attention(std::size_t queries, std::size_t keys) {
    constexpr std::size_t kDim = 64;
    constexpr std::size_t kKvHeads = 3;
    std::size_t pages = (keys + 255) / 256;
    auto kv = std::make_shared<std::vector<std::uint16_t>>(
        pages * kKvHeads * 2 * 256 * kDim
    );
    test::Random random(2);
    for (std::uint16_t& x : *kv) {
      x = float_to_half(random.unit());
    }
    auto q = std::make_shared<std::vector<float>>(
        random.floats(kKvHeads * queries * kDim)
    );
    for (const Kernels* k : available_kernels()) {
      if (std::string(k->name) == "scalar") {
        continue;
      }
      double products = static_cast<double>(kKvHeads * queries * pages * 256);
      measurements_.push_back(
          {std::string(k->name) + " attention, " + std::to_string(queries) +
               " queries a KV head, " + std::to_string(keys) + " keys",
           products * kDim * 4,
           static_cast<double>(kv->size() * 2),
           [=, this] {
             pool_.run(kKvHeads * pages, [&](std::size_t job, int) {
               std::int32_t first[16] = {};
               std::int32_t last[16];
               std::fill_n(last, 16, 256);
               float largest[16];
               float sum[16];
               float values[16 * kDim];
               const std::uint16_t* page = kv->data() + job * 2 * 256 * kDim;
               for (std::size_t r = 0; r < queries; r += k->query_rows) {
                 k->attend_page({
                     .q = q->data() + (job / pages * queries + r) * kDim,
                     .rows = std::min(k->query_rows, queries - r),
                     .k_dim = kDim,
                     .v_dim = kDim,
                     .half = true,
                     .k = page,
                     .v = page + 256 * kDim,
                     .first = first,
                     .last = last,
                     .softcap = 0,
                     .largest = largest,
                     .sum = sum,
                     .values = values,
                 });
               }
             });
           }}
      );
    }
  }

  void run(int rounds) {
    clockid_t clock =
        pool_.threads() == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
    for (int i = 0; i < rounds; ++i) {
      for (Measurement& m : measurements_) {
        if (m.name.find(filter_) != std::string::npos) {
          measure(m, clock);
        }
      }
    }
    for (const Measurement& m : measurements_) {
      if (std::isinf(m.best)) {
        continue;
      }
      std::printf(
          "%-62s %9.1f us %8.1f GFLOP/s %7.2f GB/s\n",
          m.name.c_str(),
          m.best * 1e6,
          m.flops / m.best / 1e9,
          m.bytes / m.best / 1e9
      );
    }
  }

 private:
  using Vector = std::shared_ptr<std::vector<float>>;

  std::string title(
      const Kernels& k, const Shape& shape, std::size_t tokens, const char* mode
  ) {
    return std::string(k.name) + " " + mode + " " + shape.name +
           " M=" + std::to_string(tokens);
  }

  void add_int(
      const Kernels& k,
      const Shape& shape,
      std::size_t tokens,
      std::int32_t levels,
      std::shared_ptr<Weights> weights,
      Vector x,
      Vector y
  ) {
    auto in = std::make_shared<test::RoundedInputs>(test::round_inputs(
        k, weights->copies[0].matrix, x->data(), tokens, levels
    ));
    double flops = 2.0 * static_cast<double>(tokens * shape.rows * shape.cols);
    measurements_.push_back(
        {title(k, shape, tokens, levels == kInt8Levels ? "int8" : "int16"),
         flops,
         static_cast<double>(weights->bytes),
         [=, this, &k] {
           const PackedMatrix& w = weights->take();
           constexpr std::size_t kChunk = 64;
           std::size_t token_jobs = (tokens + kChunk - 1) / kChunk;
           std::size_t step = std::max<std::size_t>(
               4, w.row_blocks * token_jobs / (12u * pool_.threads()) / 4 * 4
           );
           std::size_t jobs = (w.row_blocks + step - 1) / step;
           std::size_t groups = w.cols / 32;
           std::size_t unit = code_bytes(in->form);
           pool_.run(jobs * token_jobs, [&](std::size_t job, int) {
             std::size_t first = job / token_jobs * step;
             std::size_t token = job % token_jobs * kChunk;
             k.linear_int({
                 .weight = &w,
                 .form = in->form,
                 .codes = in->codes.data() + token * groups * unit,
                 .groups = in->groups.data() + token * groups,
                 .tokens = std::min(kChunk, tokens - token),
                 .first_block = first,
                 .last_block = std::min(first + step, w.row_blocks),
                 .y = y->data() + token * w.rows,
                 .y_step = w.rows,
                 .bias = nullptr,
             });
           });
         }}
    );
    if (tokens >= 64 && shape.rows <= 600) {
      auto out = std::make_shared<test::RoundedInputs>(*in);
      measurements_.push_back(
          {title(k, shape, tokens, "quantize, one thread,"),
           static_cast<double>(tokens * shape.cols),
           static_cast<double>(tokens * shape.cols * 4),
           [=, &k] {
             *out = test::round_inputs(
                 k, weights->copies[0].matrix, x->data(), tokens, levels
             );
           }}
      );
    }
  }

  void add_f32(
      const Kernels& k,
      const Shape& shape,
      std::size_t tokens,
      std::shared_ptr<Weights> weights,
      Vector x,
      Vector y
  ) {
    auto panels = std::make_shared<std::vector<std::vector<float>>>(
        pool_.threads(), std::vector<float>(kLinearBlocks * shape.cols * 16)
    );
    measurements_.push_back(
        {title(k, shape, tokens, "f32"),
         2.0 * static_cast<double>(tokens * shape.rows * shape.cols),
         static_cast<double>(weights->bytes),
         [=, this, &k] {
           const PackedMatrix& w = weights->take();
           std::size_t jobs =
               (w.row_blocks + kLinearBlocks - 1) / kLinearBlocks;
           pool_.run(jobs, [&](std::size_t job, int thread) {
             std::size_t first = job * kLinearBlocks;
             k.linear_f32({
                 .weight = &w,
                 .x = x->data(),
                 .x_step = w.cols,
                 .tokens = tokens,
                 .first_block = first,
                 .last_block = std::min(first + kLinearBlocks, w.row_blocks),
                 .y = y->data(),
                 .y_step = w.rows,
                 .bias = nullptr,
                 .panel = (*panels)[thread].data(),
             });
           });
         }}
    );
  }

  ThreadPool pool_;
  std::string filter_;
  AlignedBuffer memory_;
  std::atomic<std::uint64_t> sink_{0};
  std::vector<Measurement> measurements_;
};

}  // namespace
}  // namespace afterglow

int main(int argc, char** argv) {
  using namespace afterglow;
  int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  Bench bench(threads, argc > 3 ? argv[3] : "");
  const test::Format four{"", ElementType::kF16, 4, 32, false, true};
  const test::Format eight{"", ElementType::kF16, 8, 32, true, false};
  const test::Format dense{"", ElementType::kBF16, 0, 0, false, false};
  const Shape shapes[] = {
      {"4-bit 576x576", 576, 576, four},
      {"4-bit 960x576 (q, k, v)", 960, 576, four},
      {"4-bit 3072x576 (gate, up)", 3072, 576, four},
      {"4-bit 576x1536 (down)", 576, 1536, four},
      {"4-bit 2048x2048", 2048, 2048, four},
      {"8-bit 49152x576 (head)", 49152, 576, eight},
      {"bf16 1536x1536", 1536, 1536, dense},
  };
  bench.add_memory();
  for (std::size_t tokens : {1, 4, 8, 512}) {
    for (const Shape& shape : shapes) {
      if (tokens < 512 || shape.rows < 10000) {
        bench.add_linear(shape, tokens);
      }
    }
  }
  bench.add_attention(3, 3072);
  bench.add_attention(1536, 512);
  bench.add_attention(1536, 3584);
  bench.run(rounds);
}
