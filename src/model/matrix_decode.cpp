#include "model/matrix_decode.h"

#include "kernels/half.h"
#include "model/gguf_blocks.h"
#include "model/matrix_bytes.h"

namespace afterglow {
namespace {

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

}  // namespace

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

Result<MatrixSource> single_tensor_matrix(
    const RawTensor& tensor, RowOrder order, const std::string& where
) {
  if (tensor.shape.size() != 2) {
    return corrupt_tensor(
        where,
        tensor,
        "has shape " + describe_shape(tensor.shape) + ", wants two dimensions"
    );
  }
  if (const auto type = element_type(tensor.dtype)) {
    return dense_matrix(tensor, *type, order);
  }
  if (auto blocks = gguf_block_matrix(tensor, order)) {
    return *std::move(blocks);
  }
  if (auto blocks = gguf_k_matrix(tensor, order)) {
    return *std::move(blocks);
  }
  return unsupported_tensor(
      where,
      tensor,
      "has type " + tensor.dtype +
          "; supported: F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, "
          "Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS, MXFP4, and MLX's "
          "quantizations"
  );
}

Result<std::vector<float>> read_vector(
    const RawTensor& tensor, RowOrder order, const std::string& where
) {
  if (tensor.shape.size() != 1) {
    return corrupt_tensor(
        where,
        tensor,
        "has shape " + describe_shape(tensor.shape) + ", wants one dimension"
    );
  }
  const auto type = element_type(tensor.dtype);
  if (!type) {
    return unsupported_tensor(
        where, tensor, "has type " + tensor.dtype + ", wants F32, F16 or BF16"
    );
  }
  std::vector<float> values(tensor.shape[0]);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::byte* from =
        tensor.bytes.data() + order.file_row(i) * size_of(*type);
    if (*type == ElementType::kF32) {
      values[i] = load_bytes<float>(from);
    } else if (*type == ElementType::kBF16) {
      values[i] = bfloat_to_float(load_bytes<std::uint16_t>(from));
    } else {
      values[i] = half_to_float(load_bytes<std::uint16_t>(from));
    }
  }
  return values;
}

}  // namespace afterglow
