#include "store/mlx_cache_file_values.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace afterglow {

namespace {

float from_f16(std::uint32_t bits) {
  std::uint32_t sign = (bits & 0x8000u) << 16;
  std::uint32_t exponent = (bits >> 10) & 31;
  std::uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0) {  // subnormal: mantissa * 2^-24
    float value = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -value : value;
  }
  std::uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

/// Drops the low `count` bits of a magnitude, to nearest, ties to even.
std::uint32_t round_off(std::uint32_t magnitude, int count) {
  std::uint32_t half = std::uint32_t{1} << (count - 1);
  std::uint32_t odd = (magnitude >> count) & 1;
  return (magnitude + half - 1 + odd) >> count;
}

std::uint32_t to_f16(float value) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  std::uint32_t sign = (bits >> 16) & 0x8000u;
  std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude < 0x38800000u) {  // below 2^-14: counts of 2^-24
    float count = std::bit_cast<float>(magnitude) * 0x1p24f;
    return sign | static_cast<std::uint32_t>(std::nearbyint(count));
  }
  // An overflow gives infinity, which the caller refuses.
  return sign | (round_off(magnitude, 13) - (112u << 10));
}

std::uint32_t to_bf16(float value) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  std::uint32_t sign = (bits >> 16) & 0x8000u;
  return sign | round_off(bits & 0x7fffffffu, 16);
}

}  // namespace

float kv_value(KvType type, std::uint32_t bits) {
  switch (type) {
    case KvType::kF16:
      return from_f16(bits);
    case KvType::kBF16:
      return std::bit_cast<float>(bits << 16);
    case KvType::kF32:
      return std::bit_cast<float>(bits);
  }
  return 0;
}

bool convert_kv(
    KvType from, std::uint32_t bits, KvType to, std::uint32_t& result
) {
  float value = kv_value(from, bits);
  if (!std::isfinite(value)) {
    return false;
  }
  if (from == to) {
    result = bits;
    return true;
  }
  // Far beyond F16's range the shifted exponent would wrap.
  if (to == KvType::kF16 && std::abs(value) >= 131072.0f) {
    return false;
  }
  result = to == KvType::kF32   ? std::bit_cast<std::uint32_t>(value)
           : to == KvType::kF16 ? to_f16(value)
                                : to_bf16(value);
  return std::isfinite(kv_value(to, result));
}

}  // namespace afterglow
