#include "ops/cpu/cpu_linear.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/dispatch/dispatch.h"
#include "kernels/linear/pack.h"

namespace afterglow {
namespace {

constexpr std::size_t kRows = PackedMatrix::kRows;

bool same_format(const MatrixSource& a, const MatrixSource& b) {
  return a.type == b.type && a.bits == b.bits && a.group == b.group &&
         a.signed_codes == b.signed_codes && a.has_bias == b.has_bias &&
         a.values == b.values;
}

// The runs of source rows that make up rows [first, first + 16) of the parts
// one after another; at most 16.
std::size_t find_runs(
    std::span<const MatrixSource> parts, std::size_t first, SourceRows* runs
) {
  std::size_t count = 0;
  std::size_t wanted = kRows;
  for (const MatrixSource& part : parts) {
    if (first >= part.rows) {
      first -= part.rows;
      continue;
    }
    std::size_t n = std::min(wanted, part.rows - first);
    runs[count++] = {&part, first, n};
    wanted -= n;
    first = 0;
    if (wanted == 0) {
      break;
    }
  }
  return count;
}

Result<CpuLinear::Segment> pack_segment(
    std::span<const MatrixSource> parts, ThreadPool& pool, HugeArena& memory
) {
  std::size_t rows = 0;
  for (const MatrixSource& part : parts) {
    rows += part.rows;
  }
  Result<PackedMatrix> layout = packed_layout(parts.front(), rows);
  if (!layout.ok()) {
    return layout.error();
  }
  CpuLinear::Segment segment;
  segment.matrix = *layout;
  PackedMatrix& m = segment.matrix;
  std::byte* data = memory.take(m.row_blocks * m.row_block_bytes);
  m.data = data;
  std::vector<PackScratch> scratch;
  for (int i = 0; i < pool.threads(); ++i) {
    scratch.emplace_back(m);
  }
  pool.run(m.row_blocks, [&](std::size_t block, int thread) {
    SourceRows runs[kRows];
    std::size_t count = find_runs(parts, block * kRows, runs);
    std::byte* out = data + block * m.row_block_bytes;
    pack_row_block(m, runs, count, scratch[thread], out);
  });
  return segment;
}

// How many pieces of work the pool should get, so that threads that start
// late or run slower leave little to wait for.
constexpr std::size_t kJobsPerThread = 6;
// Bytes of weights that are worth handing to another thread.
constexpr std::size_t kLeastBytes = 24 << 10;
// Tokens of a piece of work; their inputs stay in the second-level cache.
constexpr std::size_t kTokenChunk = 64;

std::size_t blocks_per_job(
    const PackedMatrix& m, std::size_t token_jobs, int threads
) {
  std::size_t jobs = kJobsPerThread * threads;
  std::size_t block_jobs = std::max<std::size_t>(1, jobs / token_jobs);
  std::size_t even = (m.row_blocks + block_jobs - 1) / block_jobs;
  std::size_t least = kLeastBytes / m.row_block_bytes + 1;
  // Larger pieces would only wait for each other's weights.
  return std::clamp<std::size_t>(even, std::min<std::size_t>(least, 16), 64);
}

}  // namespace

Result<CpuLinear> CpuLinear::pack(
    std::span<const MatrixSource> parts,
    std::span<const float> bias,
    ThreadPool& pool,
    HugeArena& memory
) {
  CpuLinear linear;
  if (parts.empty()) {
    return Error{Code::kInvalidArgument, "[ops.add_linear] no parts"};
  }
  linear.cols_ = parts.front().cols;
  for (std::size_t i = 0; i < parts.size();) {
    std::size_t end = i;
    std::size_t rows = 0;
    while (end < parts.size() && same_format(parts[i], parts[end])) {
      if (parts[end].cols != linear.cols_) {
        return Error{
            Code::kInvalidArgument,
            "[ops.add_linear] parts of " + std::to_string(linear.cols_) +
                " and of " + std::to_string(parts[end].cols) + " inputs"};
      }
      rows += parts[end++].rows;
    }
    Result<Segment> segment =
        pack_segment(parts.subspan(i, end - i), pool, memory);
    if (!segment.ok()) {
      return segment.error();
    }
    segment->first_row = linear.rows_;
    linear.segments_.push_back(std::move(*segment));
    linear.rows_ += rows;
    i = end;
  }
  if (!bias.empty() && bias.size() != linear.rows_) {
    return Error{
        Code::kInvalidArgument,
        "[ops.add_linear] " + std::to_string(bias.size()) + " biases for " +
            std::to_string(linear.rows_) + " rows"};
  }
  linear.bias_.assign(bias.begin(), bias.end());
  return linear;
}

std::size_t CpuLinear::bytes() const {
  std::size_t sum = bias_.size() * sizeof(float);
  for (const Segment& segment : segments_) {
    sum += segment.matrix.row_blocks * segment.matrix.row_block_bytes;
  }
  return sum;
}

void CpuLinear::decode_row(std::size_t row, float* out) const {
  CHECK(row < rows_, "row " + std::to_string(row) + " of a linear layer");
  for (const Segment& segment : segments_) {
    if (row < segment.first_row + segment.matrix.rows) {
      afterglow::decode_row(segment.matrix, row - segment.first_row, out);
      return;
    }
  }
}

template <class Body>
void LinearRunner::for_tokens(std::size_t tokens, const Body& body) {
  constexpr std::size_t kChunk = 8;
  if (tokens < kChunk) {
    for (std::size_t t = 0; t < tokens; ++t) {
      body(t);
    }
    return;
  }
  pool_.run((tokens + kChunk - 1) / kChunk, [&](std::size_t chunk, int) {
    std::size_t end = std::min(tokens, (chunk + 1) * kChunk);
    for (std::size_t t = chunk * kChunk; t < end; ++t) {
      body(t);
    }
  });
}

void LinearRunner::run(
    const InputRows& x,
    std::size_t tokens,
    const CpuLinear& weight,
    Activations mode,
    float* y
) {
  x_ = x;
  rows_.assign(tokens, nullptr);
  for (const CpuLinear::Segment& segment : weight.segments()) {
    if (mode == Activations::kF32 || segment.matrix.bits == 0) {
      run_f32(weight, segment, tokens, y);
    } else {
      bool int8 = mode == Activations::kInt8;
      run_int(weight, segment, tokens, int8 ? kInt8Levels : kInt16Levels, y);
    }
  }
}

const float* LinearRunner::input(std::size_t token) {
  if (rows_[token] == nullptr) {
    rows_[token] = x_.row(x_.context, token);
  }
  return rows_[token];
}

void LinearRunner::run_int(
    const CpuLinear& weight,
    const CpuLinear::Segment& segment,
    std::size_t tokens,
    std::int32_t levels,
    float* y
) {
  const PackedMatrix& m = segment.matrix;
  CodeForm form = kernels_.code_form(m, levels);
  std::size_t units = m.cols / PackedMatrix::kInputs;
  std::size_t groups = units * m.block_groups;
  std::size_t unit = code_bytes(form);
  auto* codes = codes_.room_for<std::int8_t>(tokens * units * unit);
  auto* sums = groups_.room_for<InputGroup>(tokens * groups);
  std::size_t tile = kernels_.token_tile;
  for_tokens(tokens, [&](std::size_t t) {
    std::size_t start = t / tile * tile;
    std::size_t size = tile_size(tokens - start, tile);
    while (start + size <= t) {
      start += size;
      size = tile_size(tokens - start, tile);
    }
    kernels_.quantize({
        .x = input(t),
        .cols = m.cols,
        .weight_group = m.group,
        .weight_offset = m.offset,
        .levels = levels,
        .form = form,
        .codes = codes + (start * units + (t - start)) * unit,
        .code_step = size * unit,
        .groups = sums + start * groups + (t - start),
        .group_step = size,
    });
  });

  std::size_t token_jobs = (tokens + kTokenChunk - 1) / kTokenChunk;
  std::size_t step = blocks_per_job(m, token_jobs, pool_.threads());
  std::size_t block_jobs = (m.row_blocks + step - 1) / step;
  const float* bias = weight.bias();
  pool_.run(block_jobs * token_jobs, [&](std::size_t job, int) {
    std::size_t first = job / token_jobs * step;
    std::size_t token = job % token_jobs * kTokenChunk;
    kernels_.linear_int({
        .weight = &m,
        .form = form,
        .codes = codes + token * units * unit,
        .groups = sums + token * groups,
        .tokens = std::min(kTokenChunk, tokens - token),
        .first_block = first,
        .last_block = std::min(first + step, m.row_blocks),
        .y = y + token * weight.rows() + segment.first_row,
        .y_step = weight.rows(),
        .bias = bias == nullptr ? nullptr : bias + segment.first_row,
    });
  });
}

void LinearRunner::run_f32(
    const CpuLinear& weight,
    const CpuLinear::Segment& segment,
    std::size_t tokens,
    float* y
) {
  const PackedMatrix& m = segment.matrix;
  auto* x = inputs_.room_for<float>(tokens * m.cols);
  for_tokens(tokens, [&](std::size_t t) {
    std::memcpy(x + t * m.cols, input(t), m.cols * sizeof(float));
  });
  std::vector<float*>& panels = panel_pointers_;
  for (std::size_t i = 0; i < panels_.size(); ++i) {
    std::size_t floats = m.bits == 0 ? 0 : kLinearBlocks * m.cols * kRows;
    panels[i] = panels_[i].room_for<float>(floats);
  }
  std::size_t step = kLinearBlocks;
  const float* bias = weight.bias();
  pool_.run((m.row_blocks + step - 1) / step, [&](std::size_t job, int thread) {
    kernels_.linear_f32({
        .weight = &m,
        .x = x,
        .x_step = m.cols,
        .tokens = tokens,
        .first_block = job * step,
        .last_block = std::min((job + 1) * step, m.row_blocks),
        .y = y + segment.first_row,
        .y_step = weight.rows(),
        .bias = bias == nullptr ? nullptr : bias + segment.first_row,
        .panel = panels[thread],
    });
  });
}

}  // namespace afterglow
