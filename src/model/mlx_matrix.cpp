#include "model/mlx_matrix.h"

#include <array>

#include "model/fp_codes.h"
#include "model/matrix_bytes.h"
#include "model/matrix_decode.h"

namespace afterglow {
namespace {

struct FpMode {
  const char* name;
  std::size_t bits, group;
};
constexpr FpMode kFpModes[] = {
    {"mxfp4", 4, 32}, {"nvfp4", 4, 16}, {"mxfp8", 8, 32}};

// In every Width bits of a word, takes the upper of two neighbours of Bits
// bits up to the upper half.
template <int Width, int Bits>
constexpr std::uint64_t part(std::uint64_t x) {
  std::uint64_t low = 0;
  for (int at = 0; at < 64; at += Width) {
    low |= ((std::uint64_t{1} << Bits) - 1) << at;
  }
  return (x & low) | (x & low << Bits) << (Width / 2 - Bits);
}

// Eight codes of Bits bits to eight bytes, the lowest bits first.
template <int Bits>
std::uint64_t spread(std::uint64_t x) {
  return part<16, Bits>(part<32, 2 * Bits>(part<64, 4 * Bits>(x)));
}

// Reads no byte behind the codes.
template <int Bits>
void decode_codes(
    const std::byte* from, std::size_t count, std::uint8_t* codes
) {
  // Eight bytes hold more than eight codes, which spread() leaves out.
  for (; count >= 64; count -= 8, from += Bits, codes += 8) {
    store_bytes(codes, spread<Bits>(load_bytes<std::uint64_t>(from)));
  }
  for (; count > 0; count -= 8, from += Bits, codes += 8) {
    std::uint64_t packed = 0;
    std::memcpy(&packed, from, Bits);
    store_bytes(codes, spread<Bits>(packed));
  }
}

using DecodeCodes = void (*)(const std::byte*, std::size_t, std::uint8_t*);

DecodeCodes decoder(std::size_t bits) {
  switch (bits) {
    case 2:
      return decode_codes<2>;
    case 3:
      return decode_codes<3>;
    case 4:
      return decode_codes<4>;
    case 5:
      return decode_codes<5>;
    case 6:
      return decode_codes<6>;
    default:
      return [](const std::byte* from, std::size_t count, std::uint8_t* codes) {
        std::memcpy(codes, from, count);
      };
  }
}

// Where the rows of a matrix's tensors lie.
struct Rows {
  const std::byte* codes;
  const std::byte* scales;
  const std::byte* biases;
  std::size_t code_bytes, scale_bytes;  // of a row
};

void read_affine(MatrixSource& source, const Rows& rows) {
  source.has_bias = true;
  source.read = [rows,
                 cols = source.cols,
                 decode = decoder(static_cast<std::size_t>(source.bits)
                 )](std::size_t first,
                    std::size_t count,
                    void* codes,
                    void* scales,
                    void* biases) {
    const std::size_t at = first * rows.scale_bytes;
    const std::size_t bytes = count * rows.scale_bytes;
    decode(
        rows.codes + first * rows.code_bytes,
        count * cols,
        static_cast<std::uint8_t*>(codes)
    );
    std::memcpy(scales, rows.scales + at, bytes);
    std::memcpy(biases, rows.biases + at, bytes);
  };
}

// What a function makes of each byte.
template <class Function>
auto table_of(const Function& function) {
  std::array<decltype(function(0)), 256> table;
  for (std::size_t code = 0; code < table.size(); ++code) {
    table[code] = function(static_cast<std::uint8_t>(code));
  }
  return table;
}

void read_fp4(
    MatrixSource& source, const Rows& rows, std::uint16_t (*half)(std::uint8_t)
) {
  source.values = &kFp4Values;
  source.read = [rows,
                 cols = source.cols,
                 halves = table_of(half
                 )](std::size_t first,
                    std::size_t count,
                    void* codes,
                    void* scales,
                    void*) {
    decode_codes<4>(
        rows.codes + first * rows.code_bytes,
        count * cols,
        static_cast<std::uint8_t*>(codes)
    );
    const std::byte* from = rows.scales + first * rows.scale_bytes;
    auto* out = static_cast<std::uint16_t*>(scales);
    for (std::size_t i = 0; i < count * rows.scale_bytes; ++i) {
      out[i] = halves[std::to_integer<std::size_t>(from[i])];
    }
  };
}

std::uint16_t to_bfloat(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void read_fp8(MatrixSource& source, const Rows& rows) {
  source.bits = 0;
  source.group = 0;
  source.read =
      [rows,
       cols = source.cols,
       values = table_of(e4m3_to_float
       )](std::size_t first, std::size_t count, void* out, void*, void*) {
        const std::byte* codes = rows.codes + first * rows.code_bytes;
        const std::byte* scales = rows.scales + first * rows.scale_bytes;
        auto* elements = static_cast<std::uint16_t*>(out);
        for (std::size_t i = 0; i < count * cols; i += 32, ++scales) {
          const auto exponent = std::to_integer<std::uint8_t>(*scales);
          const float scale = 2 * bfloat_to_float(half_e8m0(exponent));
          for (std::size_t j = i; j < i + 32; ++j) {
            const auto code = std::to_integer<std::uint8_t>(codes[j]);
            elements[j] = to_bfloat(values[code] * scale);
          }
        }
      };
}

const char* fp_mode(std::size_t bits, std::size_t group) {
  for (const FpMode& mode : kFpModes) {
    if (bits == mode.bits && group == mode.group) {
      return mode.name;
    }
  }
  return nullptr;
}

std::string describe_codes(const MlxQuantization& quantization) {
  return std::to_string(quantization.bits) + "-bit codes in groups of " +
         std::to_string(quantization.group);
}

bool is_matrix(const RawTensor& tensor) {
  return tensor.shape.size() == 2 && tensor.shape[0] > 0 && tensor.shape[1] > 0;
}

}  // namespace

std::string MlxQuantization::describe() const {
  if (bits == 0) {
    return "unquantized";
  }
  return mode == "affine"
             ? std::to_string(bits) + "-bit group " + std::to_string(group)
             : mode;
}

Status check_mlx_quantization(
    const MlxQuantization& quantization, const std::string& where
) {
  const auto& [mode, bits, group] = quantization;
  const std::string codes = describe_codes(quantization);
  if (mode == "affine") {
    const bool bits_fit = (bits >= 2 && bits <= 6) || bits == 8;
    const bool group_fits = group == 32 || group == 64 || group == 128;
    if (bits_fit && group_fits) {
      return {};
    }
    return Error{
        Code::kUnsupported,
        where + " has " + codes +
            "; supported: 2 to 6 and 8 bits, groups of 32, 64 and 128"};
  }
  for (const FpMode& known : kFpModes) {
    if (mode != known.name) {
      continue;
    }
    if (bits == known.bits && group == known.group) {
      return {};
    }
    return Error{
        Code::kCorrupt,
        where + " has " + codes + ", which is no " + mode + ": it has " +
            std::to_string(known.bits) + "-bit codes in groups of " +
            std::to_string(known.group)};
  }
  return Error{
      Code::kUnsupported,
      where + " has mode '" + mode +
          "'; supported: affine, mxfp4, nvfp4, mxfp8"};
}

Result<MlxQuantization> mlx_quantization(
    const MlxTensors& tensors, std::size_t cols, const std::string& where
) {
  const auto& [weight, scales, biases] = tensors;
  if (!is_matrix(weight) || !is_matrix(scales) || weight.dtype != "U32" ||
      weight.shape[0] != scales.shape[0] || cols % scales.shape[1] != 0 ||
      (weight.shape[1] * 32) % cols != 0) {
    return corrupt_tensor(
        where,
        weight,
        "is " + weight.dtype + " " + describe_shape(weight.shape) +
            " with scales " + describe_shape(scales.shape) +
            ", which is no quantization of " + std::to_string(cols) + " columns"
    );
  }
  MlxQuantization found;
  found.bits = weight.shape[1] * 32 / cols;
  found.group = cols / scales.shape[1];
  if (biases != nullptr) {
    if (scales.shape != biases->shape || scales.dtype != biases->dtype) {
      return corrupt_tensor(where, *biases, "does not match the scales");
    }
    if (!element_type(scales.dtype)) {
      return unsupported_tensor(where, scales, "has type " + scales.dtype);
    }
  } else {
    const char* mode = fp_mode(found.bits, found.group);
    if (scales.dtype != "U8" || mode == nullptr) {
      return unsupported_tensor(
          where,
          weight,
          "has " + describe_codes(found) + ", " + scales.dtype +
              " scales and no biases, which is none of mxfp4, nvfp4, mxfp8"
      );
    }
    found.mode = mode;
  }
  const Status status =
      check_mlx_quantization(found, where + ": tensor '" + weight.name + "'");
  if (!status) {
    return status.error();
  }
  return found;
}

MatrixSource mlx_matrix(
    const MlxTensors& tensors,
    const MlxQuantization& quantization,
    std::size_t cols
) {
  const auto& [weight, scales, biases] = tensors;
  const bool is_affine = quantization.mode == "affine";
  MatrixSource source;
  source.rows = weight.shape[0];
  source.cols = cols;
  source.bits = static_cast<int>(quantization.bits);
  source.group = quantization.group;
  const Rows rows{
      weight.bytes.data(),
      scales.bytes.data(),
      is_affine ? biases->bytes.data() : nullptr,
      cols * quantization.bits / 8,
      scales.bytes.size() / source.rows};
  if (is_affine) {
    source.type = *element_type(scales.dtype);
    read_affine(source, rows);
  } else if (quantization.mode == "nvfp4") {
    source.type = ElementType::kF16;
    read_fp4(source, rows, half_e4m3);
  } else if (quantization.mode == "mxfp4") {
    source.type = ElementType::kBF16;
    read_fp4(source, rows, half_e8m0);
  } else {
    source.type = ElementType::kBF16;
    read_fp8(source, rows);
  }
  return source;
}

}  // namespace afterglow
