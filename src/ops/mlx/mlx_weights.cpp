#include "ops/mlx/mlx_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "base/check.h"
#include "ops/mlx/mlx_host_array.h"

namespace afterglow {
namespace {

constexpr std::size_t kRowsPerBlock = 32;

float load_element(ElementType type, const std::byte* from) {
  switch (type) {
    case ElementType::kF32: {
      float value;
      std::memcpy(&value, from, sizeof value);
      return value;
    }
    case ElementType::kF16: {
      mx::float16_t value;
      std::memcpy(&value, from, sizeof value);
      return static_cast<float>(value);
    }
    case ElementType::kBF16: {
      mx::bfloat16_t value;
      std::memcpy(&value, from, sizeof value);
      return static_cast<float>(value);
    }
  }
  return 0;
}

void store_element(mx::Dtype type, float value, std::byte* to) {
  if (type == mx::float16) {
    const auto half = static_cast<mx::float16_t>(value);
    std::memcpy(to, &half, sizeof half);
  } else if (type == mx::bfloat16) {
    const auto half = static_cast<mx::bfloat16_t>(value);
    std::memcpy(to, &half, sizeof half);
  } else {
    std::memcpy(to, &value, sizeof value);
  }
}

/// How a part is stored: dense where bits is 0.
struct Plan {
  mx::Dtype type = mx::float32;  // of scales and biases, or of elements
  int bits = 0;
  int group = 0;
  bool operator==(const Plan&) const = default;
};

Plan plan_for(const MatrixSource& source, bool widen) {
  Plan plan;
  plan.type = widen ? mx::float32 : dtype_of(source.type);
  if (source.bits == 0) {
    return plan;
  }
  const bool group_fits =
      source.group == 32 || source.group == 64 || source.group % 128 == 0;
  if (!group_fits || source.values != nullptr ||
      (source.signed_codes && source.has_bias)) {
    plan.type = mx::float32;
    return plan;
  }
  plan.bits = source.bits == 1 ? 2 : source.bits == 7 ? 8 : source.bits;
  plan.group = static_cast<int>(std::min<std::size_t>(source.group, 128));
  return plan;
}

Status check_source(const MatrixSource& source, std::size_t cols) {
  const std::string shape = "[" + std::to_string(source.rows) + ", " +
                            std::to_string(source.cols) + "]";
  if (source.rows == 0 || source.cols == 0 || source.cols != cols) {
    return Error{
        Code::kInvalidArgument,
        "[mlx.add_linear] a part of shape " + shape +
            " in a layer of input width " + std::to_string(cols)};
  }
  if (source.bits == 0) {
    return {};
  }
  if (source.bits < 0 || source.bits > 8) {
    return Error{
        Code::kUnsupported,
        "[mlx.add_linear] codes of " + std::to_string(source.bits) +
            " bits; known are 1 to 8"};
  }
  if (source.group == 0 || source.cols % source.group != 0) {
    return Error{
        Code::kUnsupported,
        "[mlx.add_linear] groups of " + std::to_string(source.group) +
            " do not divide a matrix of shape " + shape};
  }
  return {};
}

/// What a thread decodes a block of rows into.
struct Scratch {
  std::vector<std::byte> codes, scales, biases;

  void resize(const MatrixSource& source) {
    const std::size_t width = source.bits == 0 ? size_of(source.type) : 1;
    codes.resize(kRowsPerBlock * source.cols * width);
    if (source.bits != 0) {
      const std::size_t groups = source.cols / source.group;
      scales.resize(kRowsPerBlock * groups * size_of(source.type));
      biases.resize(source.has_bias ? scales.size() : 0);
    }
  }
};

/// Calls body(first, count, scratch) for blocks of rows that have been read.
template <class Body>
void for_each_block(
    const MatrixSource& source, ThreadPool& pool, const Body& body
) {
  std::vector<Scratch> scratch(static_cast<std::size_t>(pool.threads()));
  for (Scratch& each : scratch) {
    each.resize(source);
  }
  const std::size_t blocks = (source.rows + kRowsPerBlock - 1) / kRowsPerBlock;
  pool.run(blocks, [&](std::size_t block, int thread) {
    Scratch& mine = scratch[static_cast<std::size_t>(thread)];
    const std::size_t first = block * kRowsPerBlock;
    const std::size_t count = std::min(kRowsPerBlock, source.rows - first);
    source.read(
        first,
        count,
        mine.codes.data(),
        source.bits == 0 ? nullptr : mine.scales.data(),
        source.bits != 0 && source.has_bias ? mine.biases.data() : nullptr
    );
    body(first, count, mine);
  });
}

/// MLX's packing: codes follow each other from the lowest bit up.
void pack_row(
    const std::uint8_t* codes,
    std::size_t count,
    int bits,
    int offset,
    std::uint32_t* out
) {
  std::uint64_t pending = 0;
  int filled = 0;
  for (std::size_t i = 0; i < count; ++i) {
    pending |= std::uint64_t{static_cast<std::uint8_t>(codes[i] + offset)}
               << filled;
    filled += bits;
    if (filled >= 32) {
      *out++ = static_cast<std::uint32_t>(pending);
      pending >>= 32;
      filled -= 32;
    }
  }
}

struct AffineTarget {
  std::uint32_t* codes;
  std::byte* scales;
  std::byte* biases;
};

void write_affine(
    const MatrixSource& source,
    const Plan& plan,
    AffineTarget to,
    ThreadPool& pool
) {
  const std::size_t words =
      source.cols * static_cast<std::size_t>(plan.bits) / 32;
  const std::size_t groups = source.cols / source.group;
  const std::size_t repeat =
      source.group / static_cast<std::size_t>(plan.group);
  const std::size_t in = size_of(source.type);
  const std::size_t out = size_of(plan.type);
  const int offset = source.signed_codes ? 1 << (source.bits - 1) : 0;
  for_each_block(
      source,
      pool,
      [&](std::size_t first, std::size_t count, const Scratch& read) {
        for (std::size_t r = 0; r < count; ++r) {
          pack_row(
              reinterpret_cast<const std::uint8_t*>(read.codes.data()) +
                  r * source.cols,
              source.cols,
              plan.bits,
              offset,
              to.codes + (first + r) * words
          );
          for (std::size_t g = 0; g < groups; ++g) {
            const std::size_t from = (r * groups + g) * in;
            const float scale =
                load_element(source.type, read.scales.data() + from);
            const float bias =
                source.has_bias
                    ? load_element(source.type, read.biases.data() + from)
                    : scale * static_cast<float>(-offset);
            for (std::size_t i = 0; i < repeat; ++i) {
              const std::size_t at =
                  (((first + r) * groups + g) * repeat + i) * out;
              store_element(plan.type, scale, to.scales + at);
              store_element(plan.type, bias, to.biases + at);
            }
          }
        }
      }
  );
}

float code_value(const MatrixSource& source, std::byte byte) {
  const auto code = std::to_integer<std::uint8_t>(byte);
  if (source.values != nullptr) {
    return (*source.values)[code];
  }
  return source.signed_codes ? static_cast<std::int8_t>(code) : code;
}

void write_dense(
    const MatrixSource& source,
    const Plan& plan,
    std::byte* to,
    ThreadPool& pool
) {
  const std::size_t out = size_of(plan.type);
  const bool same = source.bits == 0 && plan.type == dtype_of(source.type);
  const std::size_t in = size_of(source.type);
  for_each_block(
      source,
      pool,
      [&](std::size_t first, std::size_t count, const Scratch& read) {
        std::byte* rows = to + first * source.cols * out;
        if (same) {
          std::memcpy(rows, read.codes.data(), count * source.cols * out);
          return;
        }
        for (std::size_t i = 0; i < count * source.cols; ++i) {
          float value;
          if (source.bits == 0) {
            value = load_element(source.type, read.codes.data() + i * in);
          } else {
            const std::size_t g = i / source.group;
            value = std::fma(
                load_element(source.type, read.scales.data() + g * in),
                code_value(source, read.codes[i]),
                source.has_bias
                    ? load_element(source.type, read.biases.data() + g * in)
                    : 0.0F
            );
          }
          store_element(plan.type, value, rows + i * out);
        }
      }
  );
}

int to_int(std::size_t n) {
  return static_cast<int>(n);
}

/// One piece from parts of the same plan.
MlxPiece pack_piece(
    std::span<const MatrixSource> parts, const Plan& plan, ThreadPool& pool
) {
  std::size_t rows = 0;
  const std::size_t cols = parts.front().cols;
  for (const MatrixSource& part : parts) {
    rows += part.rows;
  }
  if (plan.bits == 0) {
    HostArray dense({to_int(rows), to_int(cols)}, plan.type);
    std::byte* to = dense.data();
    for (const MatrixSource& part : parts) {
      write_dense(part, plan, to, pool);
      to += part.rows * cols * size_of(plan.type);
    }
    return {std::move(dense).take(), std::nullopt, std::nullopt, 0, 0};
  }
  const std::size_t words = cols * static_cast<std::size_t>(plan.bits) / 32;
  const std::size_t groups = cols / static_cast<std::size_t>(plan.group);
  HostArray codes({to_int(rows), to_int(words)}, mx::uint32);
  HostArray scales({to_int(rows), to_int(groups)}, plan.type);
  HostArray biases({to_int(rows), to_int(groups)}, plan.type);
  std::size_t row = 0;
  for (const MatrixSource& part : parts) {
    const std::size_t at = row * groups * size_of(plan.type);
    write_affine(
        part,
        plan,
        {reinterpret_cast<std::uint32_t*>(codes.data()) + row * words,
         scales.data() + at,
         biases.data() + at},
        pool
    );
    row += part.rows;
  }
  return {
      std::move(codes).take(),
      std::move(scales).take(),
      std::move(biases).take(),
      plan.bits,
      plan.group};
}

}  // namespace

std::size_t MlxLinear::bytes() const {
  std::size_t total = bias ? bias->nbytes() : 0;
  for (const MlxPiece& piece : pieces) {
    total += piece.codes.nbytes();
    total += piece.scales ? piece.scales->nbytes() : 0;
    total += piece.biases ? piece.biases->nbytes() : 0;
  }
  return total;
}

Result<MlxLinear> pack_linear(
    std::span<const MatrixSource> parts,
    std::span<const float> bias,
    bool widen,
    ThreadPool& pool
) {
  if (parts.empty()) {
    return Error{
        Code::kInvalidArgument, "[mlx.add_linear] a layer without parts"};
  }
  MlxLinear linear;
  linear.cols = parts.front().cols;
  for (const MatrixSource& part : parts) {
    if (Status status = check_source(part, linear.cols); !status.ok()) {
      return status.error();
    }
    linear.rows += part.rows;
  }
  if (!bias.empty() && bias.size() != linear.rows) {
    return Error{
        Code::kInvalidArgument,
        "[mlx.add_linear] " + std::to_string(bias.size()) +
            " bias elements for " + std::to_string(linear.rows) + " rows"};
  }
  for (std::size_t first = 0; first < parts.size();) {
    const Plan plan = plan_for(parts[first], widen);
    std::size_t last = first + 1;
    while (last < parts.size() && plan_for(parts[last], widen) == plan) {
      ++last;
    }
    linear.pieces.push_back(
        pack_piece(parts.subspan(first, last - first), plan, pool)
    );
    first = last;
  }
  if (!bias.empty()) {
    linear.bias = mx::array(bias.begin(), {to_int(bias.size())}, mx::float32);
  }
  return linear;
}

mx::array apply_linear(
    const MlxLinear& linear, const mx::array& x, mx::Stream stream
) {
  std::vector<mx::array> outs;
  for (const MlxPiece& piece : linear.pieces) {
    mx::array y = piece.bits != 0
                      ? mx::quantized_matmul(
                            x,
                            piece.codes,
                            *piece.scales,
                            piece.biases,
                            true,
                            piece.group,
                            piece.bits,
                            "affine",
                            stream
                        )
                      : mx::matmul(
                            mx::astype(x, piece.codes.dtype(), stream),
                            mx::transpose(piece.codes, stream),
                            stream
                        );
    outs.push_back(mx::astype(y, x.dtype(), stream));
  }
  mx::array y =
      outs.size() == 1 ? outs.front() : mx::concatenate(outs, -1, stream);
  if (linear.bias) {
    y = mx::add(y, mx::astype(*linear.bias, x.dtype(), stream), stream);
  }
  return y;
}

mx::array take_rows(
    const MlxLinear& linear,
    const mx::array& ids,
    mx::Dtype type,
    mx::Stream stream
) {
  CHECK(linear.pieces.size() == 1, "a table of rows has one format");
  const MlxPiece& piece = linear.pieces.front();
  mx::array rows = mx::take(piece.codes, ids, 0, stream);
  if (piece.bits != 0) {
    rows = mx::dequantize(
        rows,
        mx::take(*piece.scales, ids, 0, stream),
        mx::take(*piece.biases, ids, 0, stream),
        piece.group,
        piece.bits,
        "affine",
        std::nullopt,
        std::nullopt,
        stream
    );
  }
  return mx::astype(rows, type, stream);
}

}  // namespace afterglow
