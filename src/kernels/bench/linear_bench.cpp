#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "kernels/bench/suite.h"
#include "kernels/testing/linear.h"
#include "kernels/testing/matrix.h"

namespace afterglow::bench {
namespace {

// What decode reads lies in no cache: copies of a weight that together exceed
// the last-level cache by far are taken by turns.
constexpr std::size_t kInMemory = std::size_t{160} << 20;
// As the CPU backend splits the work.
constexpr std::size_t kTokenChunk = 64;
constexpr std::size_t kJobsPerThread = 6;

struct Shape {
  const char* name;
  std::size_t rows, cols;
  test::Format format;
};

std::vector<Shape> shapes() {
  const test::Format four{"", ElementType::kF16, 4, 32, false, true};
  const test::Format four_by_64{"", ElementType::kBF16, 4, 64, false, true};
  const test::Format eight{"", ElementType::kF16, 8, 32, true, false};
  const test::Format dense{"", ElementType::kBF16, 0, 0, false, false};
  return {
      {"4bit_g32/576x576", 576, 576, four},
      {"4bit_g32/3072x576", 3072, 576, four},
      {"4bit_g32/576x1536", 576, 1536, four},
      {"4bit_g32/2048x2048", 2048, 2048, four},
      {"4bit_g64/2048x2048", 2048, 2048, four_by_64},
      {"8bit_g32/2048x2048", 2048, 2048, eight},
      {"bf16/1024x2048", 1024, 2048, dense},
  };
}

/// A weight, with copies, and inputs for it.
struct Layer {
  std::vector<test::Packed> copies;
  std::size_t next = 0;
  std::vector<float> x, y;
  test::RoundedInputs in;
  std::vector<std::vector<float>> panels;  // one a thread

  Layer(const Shape& shape, std::size_t tokens, int threads) {
    test::Random random(1);
    copies.push_back(test::pack(
        test::random_matrix(shape.format, shape.rows, shape.cols, random).source
    ));
    if (tokens <= 8) {
      const std::size_t bytes = copies[0].buffer.size();
      while (copies.size() * bytes < kInMemory) copies.push_back(copy());
    }
    x = random.floats(tokens * shape.cols);
    y.resize(tokens * shape.rows);
    panels.assign(
        static_cast<std::size_t>(threads),
        std::vector<float>(kLinearBlocks * shape.cols * PackedMatrix::kRows)
    );
  }

  test::Packed copy() const {
    test::Packed made{copies[0].matrix, AlignedBuffer(copies[0].buffer.size())};
    std::memcpy(
        made.buffer.data(), copies[0].buffer.data(), made.buffer.size()
    );
    made.matrix.data = made.buffer.data();
    return made;
  }

  const PackedMatrix& take() { return copies[next++ % copies.size()].matrix; }
};

Work work_of(const Shape& shape, std::size_t tokens, Work::Limit limit) {
  test::Random random(2);
  const auto few = test::random_matrix(shape.format, 16, shape.cols, random);
  const PackedMatrix layout = packed_layout(few.source, shape.rows).value();
  return {
      .bytes = static_cast<double>(layout.row_blocks * layout.row_block_bytes),
      .operations = 2.0 * static_cast<double>(tokens * shape.rows * shape.cols),
      .limit = limit};
}

void run_int(
    const Kernels& k, ThreadPool& pool, Layer& layer, std::size_t tokens
) {
  const PackedMatrix& w = layer.take();
  const std::size_t token_jobs = (tokens + kTokenChunk - 1) / kTokenChunk;
  const std::size_t jobs =
      std::max<std::size_t>(1, kJobsPerThread * pool.threads() / token_jobs);
  const std::size_t step =
      std::clamp<std::size_t>((w.row_blocks + jobs - 1) / jobs, 1, 64);
  const std::size_t units = w.cols / PackedMatrix::kInputs;
  const std::size_t unit = code_bytes(layer.in.form);
  const std::size_t block_jobs = (w.row_blocks + step - 1) / step;
  pool.run(block_jobs * token_jobs, [&](std::size_t job, int) {
    const std::size_t first = job / token_jobs * step;
    const std::size_t token = job % token_jobs * kTokenChunk;
    k.linear_int({
        .weight = &w,
        .form = layer.in.form,
        .codes = layer.in.codes.data() + token * units * unit,
        .groups = layer.in.groups.data() + token * units * w.block_groups,
        .tokens = std::min(kTokenChunk, tokens - token),
        .first_block = first,
        .last_block = std::min(first + step, w.row_blocks),
        .y = layer.y.data() + token * w.rows,
        .y_step = w.rows,
        .bias = nullptr,
    });
  });
}

void run_f32(
    const Kernels& k, ThreadPool& pool, Layer& layer, std::size_t tokens
) {
  const PackedMatrix& w = layer.take();
  const std::size_t jobs = (w.row_blocks + kLinearBlocks - 1) / kLinearBlocks;
  pool.run(jobs, [&](std::size_t job, int thread) {
    const std::size_t first = job * kLinearBlocks;
    k.linear_f32({
        .weight = &w,
        .x = layer.x.data(),
        .x_step = w.cols,
        .tokens = tokens,
        .first_block = first,
        .last_block = std::min(first + kLinearBlocks, w.row_blocks),
        .y = layer.y.data(),
        .y_step = w.rows,
        .bias = nullptr,
        .panel = layer.panels[static_cast<std::size_t>(thread)].data(),
    });
  });
}

std::string name_of(
    const char* kernel, const Shape& shape, std::size_t tokens, const char* mode
) {
  return std::string(kernel) + "/" + shape.name + "/M" +
         std::to_string(tokens) + mode;
}

void add_int(
    Suite& suite,
    const Kernels& k,
    const Shape& shape,
    std::size_t tokens,
    std::int32_t levels
) {
  const bool int8 = levels == kInt8Levels;
  suite.add(
      k,
      name_of("linear_int", shape, tokens, int8 ? "/int8" : "/int16"),
      work_of(shape, tokens, Work::Limit::kBytes),
      [=, &suite, &k] {
        ThreadPool& pool = suite.pool();
        auto layer = std::make_shared<Layer>(shape, tokens, pool.threads());
        layer->in = test::round_inputs(
            k, layer->copies[0].matrix, layer->x.data(), tokens, levels
        );
        return [=, &k, &pool] { run_int(k, pool, *layer, tokens); };
      }
  );
}

void add_f32(
    Suite& suite, const Kernels& k, const Shape& shape, std::size_t tokens
) {
  suite.add(
      k,
      name_of("linear_f32", shape, tokens, ""),
      work_of(shape, tokens, Work::Limit::kFloats),
      [=, &suite, &k] {
        ThreadPool& pool = suite.pool();
        auto layer = std::make_shared<Layer>(shape, tokens, pool.threads());
        return [=, &k, &pool] { run_f32(k, pool, *layer, tokens); };
      }
  );
}

}  // namespace

void add_linear(Suite& suite) {
  for_each_target([&](const Kernels& k) {
    for (const Shape& shape : shapes()) {
      for (const std::size_t tokens : {1, 4, 512}) {
        if (shape.format.bits != 0) {
          add_int(suite, k, shape, tokens, kInt8Levels);
          add_int(suite, k, shape, tokens, kInt16Levels);
        }
        add_f32(suite, k, shape, tokens);
      }
    }
  });
}

}  // namespace afterglow::bench
