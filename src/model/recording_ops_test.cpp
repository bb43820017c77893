#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/half.h"
#include "model/recording_ops.h"

namespace afterglow {
namespace {

float element(const std::byte* from, ElementType type) {
  if (type == ElementType::kF32) {
    float value;
    std::memcpy(&value, from, 4);
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, from, 2);
  return type == ElementType::kF16 ? half_to_float(bits)
                                   : bfloat_to_float(bits);
}

float code_value(std::byte byte, const MatrixSource& source) {
  const auto code = static_cast<std::uint8_t>(byte);
  if (source.values != nullptr) {
    return (*source.values)[code];
  }
  return source.signed_codes ? static_cast<std::int8_t>(code) : code;
}

}  // namespace

std::vector<float> decode_matrix(const MatrixSource& source, std::size_t step) {
  const bool dense = source.bits == 0;
  const std::size_t size = size_of(source.type);
  const std::size_t groups = dense ? 0 : source.cols / source.group;
  std::vector<float> values;
  for (std::size_t first = 0; first < source.rows; first += step) {
    const std::size_t count = std::min(step, source.rows - first);
    std::vector<std::byte> codes(count * source.cols * (dense ? size : 1));
    std::vector<std::byte> scales(count * groups * size);
    std::vector<std::byte> biases(source.has_bias ? scales.size() : 0);
    source.read(
        first,
        count,
        codes.data(),
        dense ? nullptr : scales.data(),
        source.has_bias ? biases.data() : nullptr
    );
    for (std::size_t i = 0; i < count * source.cols; ++i) {
      if (dense) {
        values.push_back(element(codes.data() + i * size, source.type));
        continue;
      }
      const std::size_t group = i / source.group;
      const float scale = element(scales.data() + group * size, source.type);
      const float bias =
          source.has_bias ? element(biases.data() + group * size, source.type)
                          : 0;
      const float code = code_value(codes[i], source);
      values.push_back(source.has_bias ? scale * code + bias : scale * code);
    }
  }
  return values;
}

Result<LinearId> RecordingOps::add_linear(
    std::span<const MatrixSource> parts, std::span<const float> bias
) {
  Linear linear;
  linear.cols = parts[0].cols;
  linear.bias.assign(bias.begin(), bias.end());
  for (const MatrixSource& part : parts) {
    linear.rows += part.rows;
    const auto values = decode_matrix(part, rows_per_read);
    linear.values.insert(linear.values.end(), values.begin(), values.end());
  }
  linears.push_back(std::move(linear));
  return LinearId{static_cast<int>(linears.size()) - 1};
}

VectorId RecordingOps::add_vector(std::span<const float> values) {
  vectors.emplace_back(values.begin(), values.end());
  return VectorId{static_cast<int>(vectors.size()) - 1};
}

namespace {

[[noreturn]] void computes_nothing() {
  check_failed(__FILE__, __LINE__, "RecordingOps", "computes nothing");
}

}  // namespace

std::unique_ptr<KvState> RecordingOps::new_kv(const KvLayout&, PagePool&) {
  computes_nothing();
}
void RecordingOps::begin(const Batch&) {
  computes_nothing();
}
Value RecordingOps::embed(LinearId, float) {
  computes_nothing();
}
Value RecordingOps::linear(const Value&, LinearId) {
  computes_nothing();
}
Value RecordingOps::rms_norm(const Value&, VectorId, float) {
  computes_nothing();
}
Value RecordingOps::attend(Value, const Attention&) {
  computes_nothing();
}
Value RecordingOps::gated_mlp(const Value&, LinearId, LinearId, GateFunction) {
  computes_nothing();
}
void RecordingOps::add(Value&, const Value&) {
  computes_nothing();
}
void RecordingOps::
    logits(const Value&, LinearId, std::span<const std::size_t>, float, std::span<float>) {
  computes_nothing();
}
Status RecordingOps::end(bool) {
  computes_nothing();
}

}  // namespace afterglow
