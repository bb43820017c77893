#include "kernels/half.h"
#include "model/gguf_blocks.h"

namespace afterglow {
namespace {

// What blocks of 256 have in common: their scales are products of a f16 and an
// integer, exact as f32.
template <int Bits, bool Signed, std::size_t Group, bool Bias>
struct Block256 {
  using Scale = float;
  static constexpr ElementType kType = ElementType::kF32;
  static constexpr std::size_t kInputs = 256;
  static constexpr std::size_t kGroup = Group;
  static constexpr int kBits = Bits;
  static constexpr bool kSigned = Signed;
  static constexpr bool kBias = Bias;
  static constexpr const CodeValues* kValues = nullptr;
};

float load_half(const std::byte* from) {
  return half_to_float(load_bytes<std::uint16_t>(from));
}

std::uint64_t load_eight(const std::byte* from) {
  return load_bytes<std::uint64_t>(from);
}

int byte_at(const std::byte* from, std::size_t i) {
  return std::to_integer<int>(from[i]);
}

// Calls codes(run, i) for inputs 32 run + i .. 32 run + i + 7 and stores them.
template <class Codes>
void store_256(std::uint8_t* out, const Codes& codes) {
  for (int run = 0; run < 8; ++run) {
    for (std::size_t i = 0; i < 32; i += 8, out += 8) {
      store_bytes(out, codes(run, i));
    }
  }
}

// Codes of 2 bits: 32 bytes hold 128 of them, first all lowest bits.
std::uint64_t two_bits(const std::byte* from, int run, std::size_t i) {
  return bits_of_eight(load_eight(from + run / 4 * 32 + i), run % 4 * 2, 2);
}

// Codes of 4 bits: 32 bytes hold 64 of them.
std::uint64_t four_bits(const std::byte* from, int run, std::size_t i) {
  return bits_of_eight(load_eight(from + run / 2 * 32 + i), run % 2 * 4, 4);
}

// One bit: bit `run` of 32 bytes.
std::uint64_t one_bit(const std::byte* from, int run, std::size_t i) {
  return bits_of_eight(load_eight(from + i), run, 1);
}

// Scale and minimum `i` of eight, of 6 bits each in 12 bytes: the first four
// of each are the low bits of bytes; the others are a nibble behind and the
// top bits of those.
struct ScaleAndMinimum {
  int scale, minimum;
};
ScaleAndMinimum six_bits(const std::byte* from, std::size_t i) {
  if (i < 4) {
    return {byte_at(from, i) & 63, byte_at(from, i + 4) & 63};
  }
  const int low = byte_at(from, i + 4);
  return {
      (low & 15) | byte_at(from, i - 4) >> 6 << 4,
      low >> 4 | byte_at(from, i) >> 6 << 4};
}

// The head of Q4_K and Q5_K.
void decode_head(const std::byte* block, float* scales, float* biases) {
  const float scale = load_half(block);
  const float minimum = load_half(block + 2);
  for (std::size_t i = 0; i < 8; ++i) {
    const ScaleAndMinimum six = six_bits(block + 4, i);
    scales[i] = scale * static_cast<float>(six.scale);
    biases[i] = -(minimum * static_cast<float>(six.minimum));
  }
}

struct Q2_K : Block256<2, false, 16, true> {
  static constexpr std::size_t kBytes = 84;
  static void decode(
      const std::byte* block, std::uint8_t* codes, float* scales, float* biases
  ) {
    const float scale = load_half(block + 80);
    const float minimum = load_half(block + 82);
    for (std::size_t i = 0; i < 16; ++i) {
      const int both = byte_at(block, i);
      scales[i] = scale * static_cast<float>(both & 15);
      biases[i] = -(minimum * static_cast<float>(both >> 4));
    }
    store_256(codes, [&](int run, std::size_t i) {
      return two_bits(block + 16, run, i);
    });
  }
};

struct Q3_K : Block256<3, true, 16, false> {
  static constexpr std::size_t kBytes = 110;
  static void
  decode(const std::byte* block, std::uint8_t* codes, float* scales, float*) {
    const float scale = load_half(block + 108);
    const std::byte* packed = block + 96;
    for (std::size_t i = 0; i < 16; ++i) {
      const int low = byte_at(packed, i % 8) >> i / 8 * 4 & 15;
      const int high = byte_at(packed, 8 + i % 4) >> i / 4 * 2 & 3;
      scales[i] = scale * static_cast<float>((low | high << 4) - 32);
    }
    store_256(codes, [&](int run, std::size_t i) {
      return less(
          two_bits(block + 32, run, i) | one_bit(block, run, i) << 2, 4
      );
    });
  }
};

struct Q4_K : Block256<4, false, 32, true> {
  static constexpr std::size_t kBytes = 144;
  static void decode(
      const std::byte* block, std::uint8_t* codes, float* scales, float* biases
  ) {
    decode_head(block, scales, biases);
    store_256(codes, [&](int run, std::size_t i) {
      return four_bits(block + 16, run, i);
    });
  }
};

struct Q5_K : Block256<5, false, 32, true> {
  static constexpr std::size_t kBytes = 176;
  static void decode(
      const std::byte* block, std::uint8_t* codes, float* scales, float* biases
  ) {
    decode_head(block, scales, biases);
    store_256(codes, [&](int run, std::size_t i) {
      return four_bits(block + 48, run, i) | one_bit(block + 16, run, i) << 4;
    });
  }
};

struct Q6_K : Block256<6, true, 16, false> {
  static constexpr std::size_t kBytes = 210;
  static void
  decode(const std::byte* block, std::uint8_t* codes, float* scales, float*) {
    const float scale = load_half(block + 208);
    for (std::size_t i = 0; i < 16; ++i) {
      const auto factor = std::to_integer<std::int8_t>(block[192 + i]);
      scales[i] = scale * static_cast<float>(factor);
    }
    // 64 bytes hold the low bits of 128 codes.
    store_256(codes, [&](int run, std::size_t i) {
      const std::byte* low = block + run / 4 * 64 + run % 2 * 32 + i;
      const auto four = bits_of_eight(load_eight(low), run % 4 / 2 * 4, 4);
      return less(four | two_bits(block + 128, run, i) << 4, 32);
    });
  }
};

struct Iq4Xs : Block256<4, false, 32, false> {
  static constexpr std::size_t kBytes = 136;
  static constexpr const CodeValues* kValues = &kIq4Values;
  static void
  decode(const std::byte* block, std::uint8_t* codes, float* scales, float*) {
    const float scale = load_half(block);
    const int high = load_bytes<std::uint16_t>(block + 2);
    for (std::size_t i = 0; i < 8; ++i) {
      const int low = byte_at(block + 4, i / 2) >> i % 2 * 4 & 15;
      const int six = low | (high >> 2 * i & 3) << 4;
      scales[i] = scale * static_cast<float>(six - 32);
    }
    // Blocks of 32 as in IQ4_NL: halves of bytes are 16 inputs apart.
    store_256(codes, [&](int run, std::size_t i) {
      const std::byte* from = block + 8 + run * 16 + i % 16;
      return bits_of_eight(load_eight(from), i < 16 ? 0 : 4, 4);
    });
  }
};

}  // namespace

std::optional<MatrixSource> gguf_k_matrix(
    const RawTensor& tensor, RowOrder order
) {
  if (tensor.dtype == "Q2_K") {
    return block_matrix<Q2_K>(tensor, order);
  }
  if (tensor.dtype == "Q3_K") {
    return block_matrix<Q3_K>(tensor, order);
  }
  if (tensor.dtype == "Q4_K") {
    return block_matrix<Q4_K>(tensor, order);
  }
  if (tensor.dtype == "Q5_K") {
    return block_matrix<Q5_K>(tensor, order);
  }
  if (tensor.dtype == "Q6_K") {
    return block_matrix<Q6_K>(tensor, order);
  }
  if (tensor.dtype == "IQ4_XS") {
    return block_matrix<Iq4Xs>(tensor, order);
  }
  return std::nullopt;
}

}  // namespace afterglow
