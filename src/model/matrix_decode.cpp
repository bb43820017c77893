#include "model/matrix_decode.h"

#include <bit>
#include <cstring>

#include "kernels/half.h"

namespace afterglow {
namespace {

static_assert(std::endian::native == std::endian::little);

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <class T>
void store(void* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

Error corrupt(
    const std::string& where, const RawTensor& tensor, const std::string& why
) {
  return {Code::kCorrupt, where + ": tensor '" + tensor.name + "' " + why};
}

Error unsupported(
    const std::string& where, const RawTensor& tensor, const std::string& why
) {
  return {Code::kUnsupported, where + ": tensor '" + tensor.name + "' " + why};
}

std::optional<ElementType> element_type(const std::string& dtype) {
  if (dtype == "F32") {
    return ElementType::kF32;
  }
  if (dtype == "F16") {
    return ElementType::kF16;
  }
  if (dtype == "BF16") {
    return ElementType::kBF16;
  }
  return std::nullopt;
}

// A block of 32 values in GGUF: the head (a f16 scale, for Q4_1 also a f16
// minimum), then codes.
constexpr std::size_t kBlock = 32;

// Nibbles: low halves are the first 16 values, high halves the last 16.
void split_nibbles(const std::byte* from, std::uint8_t* codes) {
  constexpr std::uint64_t kLow = 0x0f0f0f0f0f0f0f0f;
  for (std::size_t i = 0; i < 16; i += 8) {
    const auto packed = load<std::uint64_t>(from + i);
    store(codes + i, packed & kLow);
    store(codes + 16 + i, (packed >> 4) & kLow);
  }
}

// The same, less 8 and as two's complement: per byte (x ^ 8) - 8, the
// subtraction kept inside the byte by a borrowed top bit.
void split_signed_nibbles(const std::byte* from, std::uint8_t* codes) {
  constexpr std::uint64_t kLow = 0x0f0f0f0f0f0f0f0f;
  constexpr std::uint64_t kEight = 0x0808080808080808;
  constexpr std::uint64_t kTop = 0x8080808080808080;
  const auto less_8 = [](std::uint64_t x) {
    return ((x | kTop) - kEight) ^ kTop;
  };
  for (std::size_t i = 0; i < 16; i += 8) {
    const auto packed = load<std::uint64_t>(from + i);
    store(codes + i, less_8(packed & kLow));
    store(codes + 16 + i, less_8((packed >> 4) & kLow));
  }
}

struct Q4_0 {
  static constexpr std::size_t kBytes = 18;
  static void decode(const std::byte* block, std::uint8_t* codes) {
    split_signed_nibbles(block + 2, codes);
  }
};

struct Q4_1 {
  static constexpr std::size_t kBytes = 20;
  static void decode(const std::byte* block, std::uint8_t* codes) {
    split_nibbles(block + 4, codes);
  }
};

struct Q8_0 {
  static constexpr std::size_t kBytes = 34;
  static void decode(const std::byte* block, std::uint8_t* codes) {
    std::memcpy(codes, block + 2, kBlock);
  }
};

template <class Format>
auto block_reader(
    const std::byte* data, std::size_t cols, RowOrder order, bool has_bias
) {
  return [=](std::size_t first,
             std::size_t count,
             void* codes_out,
             void* scales_out,
             void* biases_out) {
    const std::size_t blocks = cols / kBlock;
    auto* codes = static_cast<std::uint8_t*>(codes_out);
    auto* scales = static_cast<std::uint16_t*>(scales_out);
    auto* biases = static_cast<std::uint16_t*>(biases_out);
    for (std::size_t row = first; row < first + count; ++row) {
      const std::byte* block =
          data + order.file_row(row) * blocks * Format::kBytes;
      for (std::size_t i = 0; i < blocks; ++i, block += Format::kBytes) {
        *scales++ = load<std::uint16_t>(block);
        if (has_bias) {
          *biases++ = load<std::uint16_t>(block + 2);
        }
        Format::decode(block, codes);
        codes += kBlock;
      }
    }
  };
}

template <class Format>
MatrixSource block_matrix(
    const RawTensor& tensor, RowOrder order, int bits, bool has_bias
) {
  MatrixSource source;
  source.rows = tensor.shape[0];
  source.cols = tensor.shape[1];
  source.type = ElementType::kF16;
  source.bits = bits;
  source.group = kBlock;
  source.signed_codes = !has_bias;
  source.has_bias = has_bias;
  source.read =
      block_reader<Format>(tensor.bytes.data(), source.cols, order, has_bias);
  return source;
}

MatrixSource dense_matrix(
    const RawTensor& tensor, ElementType type, RowOrder order
) {
  MatrixSource source;
  source.rows = tensor.shape[0];
  source.cols = tensor.shape[1];
  source.type = type;
  const std::size_t row_bytes = source.cols * size_of(type);
  source.read =
      [data = tensor.bytes.data(),
       row_bytes,
       order](std::size_t first, std::size_t count, void* codes, void*, void*) {
        auto* out = static_cast<std::byte*>(codes);
        for (std::size_t row = first; row < first + count; ++row) {
          std::memcpy(out, data + order.file_row(row) * row_bytes, row_bytes);
          out += row_bytes;
        }
      };
  return source;
}

// Eight 4-bit codes to eight bytes, the lowest bits first.
std::uint64_t spread_nibbles(std::uint32_t packed) {
  std::uint64_t x = packed;
  x = (x | x << 16) & 0x0000ffff0000ffff;
  x = (x | x << 8) & 0x00ff00ff00ff00ff;
  return (x | x << 4) & 0x0f0f0f0f0f0f0f0f;
}

void decode_mlx_codes(
    const std::byte* from, std::size_t count, int bits, std::uint8_t* codes
) {
  if (bits == 8) {
    std::memcpy(codes, from, count);
    return;
  }
  for (std::size_t i = 0; i < count; i += 8, from += 4, codes += 8) {
    store(codes, spread_nibbles(load<std::uint32_t>(from)));
  }
}

}  // namespace

Result<MatrixSource> single_tensor_matrix(
    const RawTensor& tensor, RowOrder order, const std::string& where
) {
  if (tensor.shape.size() != 2) {
    return corrupt(
        where,
        tensor,
        "has shape " + describe_shape(tensor.shape) + ", wants two dimensions"
    );
  }
  if (const auto type = element_type(tensor.dtype)) {
    return dense_matrix(tensor, *type, order);
  }
  if (tensor.dtype == "Q4_0") {
    return block_matrix<Q4_0>(tensor, order, 4, false);
  }
  if (tensor.dtype == "Q4_1") {
    return block_matrix<Q4_1>(tensor, order, 4, true);
  }
  if (tensor.dtype == "Q8_0") {
    return block_matrix<Q8_0>(tensor, order, 8, false);
  }
  return unsupported(
      where,
      tensor,
      "has type " + tensor.dtype +
          "; supported: F32, F16, BF16, Q4_0, Q4_1, Q8_0, and MLX's affine "
          "4 and 8 bits"
  );
}

Result<MatrixSource> mlx_affine_matrix(
    const RawTensor& weight,
    const RawTensor& scales,
    const RawTensor& biases,
    std::size_t cols,
    const std::string& where
) {
  const auto is_matrix = [](const RawTensor& tensor) {
    return tensor.shape.size() == 2 && tensor.shape[0] > 0 &&
           tensor.shape[1] > 0;
  };
  if (!is_matrix(weight) || !is_matrix(scales) || weight.dtype != "U32" ||
      weight.shape[0] != scales.shape[0] || cols % scales.shape[1] != 0 ||
      (weight.shape[1] * 32) % cols != 0) {
    return corrupt(
        where,
        weight,
        "is " + weight.dtype + " " + describe_shape(weight.shape) +
            " with scales " + describe_shape(scales.shape) +
            ", which is no affine quantization of " + std::to_string(cols) +
            " columns"
    );
  }
  if (scales.shape != biases.shape || scales.dtype != biases.dtype) {
    return corrupt(where, biases, "does not match the scales");
  }
  const auto type = element_type(scales.dtype);
  if (!type) {
    return unsupported(where, scales, "has type " + scales.dtype);
  }
  const std::size_t bits = weight.shape[1] * 32 / cols;
  const std::size_t group = cols / scales.shape[1];
  if (bits != 4 && bits != 8) {
    return unsupported(
        where,
        weight,
        "has " + std::to_string(bits) + "-bit codes; supported: 4 and 8"
    );
  }
  if (group != 32 && group != 64 && group != 128) {
    return unsupported(
        where,
        weight,
        "has groups of " + std::to_string(group) + "; supported: 32, 64 and 128"
    );
  }
  MatrixSource source;
  source.rows = weight.shape[0];
  source.cols = cols;
  source.type = *type;
  source.bits = static_cast<int>(bits);
  source.group = group;
  source.has_bias = true;
  const std::size_t code_bytes = cols * bits / 8;
  const std::size_t scale_bytes = cols / group * size_of(*type);
  source.read = [codes = weight.bytes.data(),
                 scales = scales.bytes.data(),
                 biases = biases.bytes.data(),
                 cols,
                 bits = source.bits,
                 code_bytes,
                 scale_bytes](
                    std::size_t first,
                    std::size_t count,
                    void* codes_out,
                    void* scales_out,
                    void* biases_out
                ) {
    decode_mlx_codes(
        codes + first * code_bytes,
        count * cols,
        bits,
        static_cast<std::uint8_t*>(codes_out)
    );
    std::memcpy(scales_out, scales + first * scale_bytes, count * scale_bytes);
    std::memcpy(biases_out, biases + first * scale_bytes, count * scale_bytes);
  };
  return source;
}

Result<std::vector<float>> read_vector(
    const RawTensor& tensor, RowOrder order, const std::string& where
) {
  if (tensor.shape.size() != 1) {
    return corrupt(
        where,
        tensor,
        "has shape " + describe_shape(tensor.shape) + ", wants one dimension"
    );
  }
  const auto type = element_type(tensor.dtype);
  if (!type) {
    return unsupported(
        where, tensor, "has type " + tensor.dtype + ", wants F32, F16 or BF16"
    );
  }
  std::vector<float> values(tensor.shape[0]);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::byte* from =
        tensor.bytes.data() + order.file_row(i) * size_of(*type);
    if (*type == ElementType::kF32) {
      values[i] = load<float>(from);
    } else if (*type == ElementType::kBF16) {
      values[i] = bfloat_to_float(load<std::uint16_t>(from));
    } else {
      values[i] = half_to_float(load<std::uint16_t>(from));
    }
  }
  return values;
}

}  // namespace afterglow
