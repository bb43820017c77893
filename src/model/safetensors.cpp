#include "model/safetensors.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "model/json.h"

namespace afterglow {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMaxHeader = 100'000'000;  // the format's own limit
constexpr std::size_t kMaxDimensions = 16;

std::optional<std::uint64_t> dtype_size(const std::string& dtype) {
  static const std::map<std::string, std::uint64_t> kSizes = {
      {"BOOL", 1},
      {"U8", 1},
      {"I8", 1},
      {"F8_E4M3", 1},
      {"F8_E5M2", 1},
      {"F8_E8M0", 1},
      {"U16", 2},
      {"I16", 2},
      {"F16", 2},
      {"BF16", 2},
      {"U32", 4},
      {"I32", 4},
      {"F32", 4},
      {"U64", 8},
      {"I64", 8},
      {"F64", 8},
      {"C64", 8},
  };
  const auto found = kSizes.find(dtype);
  return found == kSizes.end() ? std::nullopt : std::optional(found->second);
}

Error corrupt(const std::string& where, const std::string& why) {
  return {Code::kCorrupt, where + ": " + why};
}

// An array of unsigned integers, or nothing.
std::optional<std::vector<std::uint64_t>> unsigned_array(
    const json& object, const char* key
) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) {
    return std::nullopt;
  }
  std::vector<std::uint64_t> values;
  for (const json& value : *found) {
    if (!value.is_number_unsigned()) {
      return std::nullopt;
    }
    values.push_back(value.get<std::uint64_t>());
  }
  return values;
}

Result<RawTensor> read_tensor(
    const std::string& key,
    const json& entry,
    std::span<const std::byte> data,
    const std::string& name
) {
  const std::string where =
      "[model.safetensors] " + name + ": tensor '" + key + "'";
  if (!entry.is_object() || entry.size() != 3 || !entry.contains("dtype") ||
      !entry["dtype"].is_string()) {
    return corrupt(where, "needs exactly dtype, shape and data_offsets");
  }
  RawTensor tensor;
  tensor.name = key;
  tensor.dtype = entry["dtype"].get<std::string>();
  const auto size = dtype_size(tensor.dtype);
  if (!size) {
    return Error{
        Code::kUnsupported, where + ": unknown dtype '" + tensor.dtype + "'"};
  }
  const auto shape = unsigned_array(entry, "shape");
  if (!shape || shape->size() > kMaxDimensions) {
    return corrupt(where, "shape must be an array of at most 16 sizes");
  }
  tensor.shape = *shape;
  std::optional<std::uint64_t> bytes = *size;
  for (std::uint64_t dimension : tensor.shape) {
    bytes = checked_multiply(*bytes, dimension);
    if (!bytes) {
      return corrupt(where, "shape " + describe_shape(*shape) + " overflows");
    }
  }
  const auto offsets = unsigned_array(entry, "data_offsets");
  if (!offsets || offsets->size() != 2) {
    return corrupt(where, "data_offsets must be [begin, end]");
  }
  const std::uint64_t begin = (*offsets)[0];
  const std::uint64_t end = (*offsets)[1];
  if (begin > end || end > data.size()) {
    return corrupt(
        where,
        "data_offsets " + describe_shape(*offsets) + " lie outside the " +
            std::to_string(data.size()) + " bytes of data"
    );
  }
  if (end - begin != *bytes) {
    return corrupt(
        where,
        "shape " + describe_shape(*shape) + " of " + tensor.dtype + " needs " +
            std::to_string(*bytes) + " bytes, data_offsets give " +
            std::to_string(end - begin)
    );
  }
  tensor.bytes = data.subspan(begin, end - begin);
  return tensor;
}

Status read_metadata(
    const json& entry, Safetensors& result, const std::string& where
) {
  if (entry.is_null()) {
    return {};  // as MLX writes it where there is none
  }
  if (!entry.is_object()) {
    return corrupt(where, "__metadata__ must be an object of strings");
  }
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) {
      return corrupt(where, "__metadata__ '" + key + "' is not a string");
    }
    result.metadata[key] = value.get<std::string>();
  }
  return {};
}

Status check_coverage(
    std::vector<RawTensor>& tensors,
    std::span<const std::byte> data,
    const std::string& where
) {
  std::sort(
      tensors.begin(),
      tensors.end(),
      [](const RawTensor& a, const RawTensor& b) {
        return std::pair(a.bytes.data(), a.bytes.size()) <
               std::pair(b.bytes.data(), b.bytes.size());
      }
  );
  const std::byte* next = data.data();
  for (const RawTensor& tensor : tensors) {
    if (tensor.bytes.data() != next) {
      const bool gap = tensor.bytes.data() > next;
      return corrupt(
          where,
          "tensor '" + tensor.name + "' " +
              (gap ? "leaves a gap before its data"
                   : "overlaps the data of another")
      );
    }
    next += tensor.bytes.size();
  }
  if (next != data.data() + data.size()) {
    return corrupt(
        where,
        std::to_string(data.data() + data.size() - next) +
            " bytes after the last tensor"
    );
  }
  return {};
}

}  // namespace

Result<Safetensors> parse_safetensors(
    std::span<const std::byte> file, const std::string& name
) {
  const std::string where = "[model.safetensors] " + name;
  std::uint64_t length = 0;
  if (file.size() < sizeof(length)) {
    return corrupt(where, "shorter than the 8 bytes of a header length");
  }
  std::memcpy(&length, file.data(), sizeof(length));
  file = file.subspan(sizeof(length));
  if (length > kMaxHeader || length > file.size()) {
    return corrupt(
        where,
        "header length " + std::to_string(length) +
            " exceeds the file or the format's 100,000,000"
    );
  }
  const auto* text = reinterpret_cast<const char*>(file.data());
  if (length == 0 || text[0] != '{') {
    return corrupt(where, "the header does not start with '{'");
  }
  auto header = parse_json({text, length}, where + ": header");
  if (!header) {
    return header.error();
  }
  if (!header->is_object()) {
    return corrupt(where, "the header is not an object");
  }
  const std::span<const std::byte> data = file.subspan(length);
  Safetensors result;
  for (const auto& [key, entry] : header->items()) {
    if (key == "__metadata__") {
      if (Status status = read_metadata(entry, result, where); !status) {
        return status.error();
      }
      continue;
    }
    auto tensor = read_tensor(key, entry, data, name);
    if (!tensor) {
      return tensor.error();
    }
    result.tensors.push_back(std::move(*tensor));
  }
  if (Status status = check_coverage(result.tensors, data, where); !status) {
    return status.error();
  }
  return result;
}

}  // namespace afterglow
