#include "model/gguf_blocks.h"

#include "model/fp_codes.h"

namespace afterglow {
namespace {

// What blocks of 32 have in common. Scales are f16, biases ("minima") follow.
template <int Bits, bool Signed>
struct Block32 {
  using Scale = std::uint16_t;
  static constexpr ElementType kType = ElementType::kF16;
  static constexpr std::size_t kInputs = 32;
  static constexpr std::size_t kGroup = 32;
  static constexpr int kBits = Bits;
  static constexpr bool kSigned = Signed;
  static constexpr bool kBias = false;
  static constexpr const CodeValues* kValues = nullptr;
};

// Eight codes of a half from 16 bytes of nibbles: low halves of bytes are the
// first 16 inputs, high halves the last 16.
std::uint64_t nibbles(const std::byte* from, std::size_t input) {
  const auto bytes = load_bytes<std::uint64_t>(from + input % 16);
  return bits_of_eight(bytes, input < 16 ? 0 : 4, 4);
}

// The same with a fifth bit each from 4 bytes.
std::uint64_t five_bits(
    const std::byte* low, const std::byte* high, std::size_t input
) {
  const auto bits = std::to_integer<std::uint8_t>(high[input / 8]);
  return nibbles(low, input) | spread_bits(bits) << 4;
}

template <class Codes>
void store_32(std::uint8_t* out, const Codes& codes) {
  for (std::size_t i = 0; i < 32; i += 8) {
    store_bytes(out + i, codes(i));
  }
}

struct Q4_0 : Block32<4, true> {
  static constexpr std::size_t kBytes = 18;
  static void
  decode(const std::byte* block, std::uint8_t* codes, Scale* scale, Scale*) {
    *scale = load_bytes<Scale>(block);
    store_32(codes, [&](std::size_t i) {
      return less(nibbles(block + 2, i), 8);
    });
  }
};

struct Q4_1 : Block32<4, false> {
  static constexpr std::size_t kBytes = 20;
  static constexpr bool kBias = true;
  static void decode(
      const std::byte* block, std::uint8_t* codes, Scale* scale, Scale* bias
  ) {
    *scale = load_bytes<Scale>(block);
    *bias = load_bytes<Scale>(block + 2);
    store_32(codes, [&](std::size_t i) { return nibbles(block + 4, i); });
  }
};

struct Q5_0 : Block32<5, true> {
  static constexpr std::size_t kBytes = 22;
  static void
  decode(const std::byte* block, std::uint8_t* codes, Scale* scale, Scale*) {
    *scale = load_bytes<Scale>(block);
    store_32(codes, [&](std::size_t i) {
      return less(five_bits(block + 6, block + 2, i), 16);
    });
  }
};

struct Q5_1 : Block32<5, false> {
  static constexpr std::size_t kBytes = 24;
  static constexpr bool kBias = true;
  static void decode(
      const std::byte* block, std::uint8_t* codes, Scale* scale, Scale* bias
  ) {
    *scale = load_bytes<Scale>(block);
    *bias = load_bytes<Scale>(block + 2);
    store_32(codes, [&](std::size_t i) {
      return five_bits(block + 8, block + 4, i);
    });
  }
};

struct Q8_0 : Block32<8, true> {
  static constexpr std::size_t kBytes = 34;
  static void
  decode(const std::byte* block, std::uint8_t* codes, Scale* scale, Scale*) {
    *scale = load_bytes<Scale>(block);
    std::memcpy(codes, block + 2, kInputs);
  }
};

struct Iq4Nl : Block32<4, false> {
  static constexpr std::size_t kBytes = 18;
  static constexpr const CodeValues* kValues = &kIq4Values;
  static void
  decode(const std::byte* block, std::uint8_t* codes, Scale* scale, Scale*) {
    *scale = load_bytes<Scale>(block);
    store_32(codes, [&](std::size_t i) { return nibbles(block + 2, i); });
  }
};

struct Mxfp4 : Block32<4, false> {
  static constexpr ElementType kType = ElementType::kBF16;
  static constexpr std::size_t kBytes = 17;
  static constexpr const CodeValues* kValues = &kFp4Values;
  static void
  decode(const std::byte* block, std::uint8_t* codes, Scale* scale, Scale*) {
    *scale = half_e8m0(std::to_integer<std::uint8_t>(*block));
    store_32(codes, [&](std::size_t i) { return nibbles(block + 1, i); });
  }
};

}  // namespace

std::optional<MatrixSource> gguf_block_matrix(
    const RawTensor& tensor, RowOrder order
) {
  if (tensor.dtype == "Q4_0") {
    return block_matrix<Q4_0>(tensor, order);
  }
  if (tensor.dtype == "Q4_1") {
    return block_matrix<Q4_1>(tensor, order);
  }
  if (tensor.dtype == "Q5_0") {
    return block_matrix<Q5_0>(tensor, order);
  }
  if (tensor.dtype == "Q5_1") {
    return block_matrix<Q5_1>(tensor, order);
  }
  if (tensor.dtype == "Q8_0") {
    return block_matrix<Q8_0>(tensor, order);
  }
  if (tensor.dtype == "IQ4_NL") {
    return block_matrix<Iq4Nl>(tensor, order);
  }
  if (tensor.dtype == "MXFP4") {
    return block_matrix<Mxfp4>(tensor, order);
  }
  return std::nullopt;
}

}  // namespace afterglow
