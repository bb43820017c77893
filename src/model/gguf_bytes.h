#pragma once

#include <cstddef>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "model/gguf.h"

namespace afterglow {

/// Writes GGUF files for tests and remembers where each field lies, so that a
/// test can damage one.
class GgufBytes {
 public:
  GgufBytes() {
    raw("GGUF", 4, "magic");
    u32(3, "version");
    u64(0, "tensor count");
    u64(0, "metadata count");
  }

  GgufBytes& text(const std::string& key, const std::string& value) {
    start_value(key, GgufType::kString);
    string(value, key);
    return *this;
  }
  GgufBytes& count(const std::string& key, std::uint32_t value) {
    start_value(key, GgufType::kU32);
    u32(value, key);
    return *this;
  }
  GgufBytes& number(const std::string& key, float value) {
    start_value(key, GgufType::kF32);
    raw(&value, 4, key);
    return *this;
  }
  GgufBytes& boolean(const std::string& key, std::uint8_t value) {
    start_value(key, GgufType::kBool);
    raw(&value, 1, key);
    return *this;
  }
  GgufBytes& texts(
      const std::string& key, const std::vector<std::string>& values
  ) {
    start_array(key, GgufType::kString, values.size());
    for (const std::string& value : values) {
      string(value, key + " element");
    }
    return *this;
  }
  GgufBytes& floats(const std::string& key, const std::vector<float>& values) {
    start_array(key, GgufType::kF32, values.size());
    raw(values.data(), 4 * values.size(), key + " elements");
    return *this;
  }

  /// Adds a tensor entry; `shape` is innermost first, as in the file.
  GgufBytes& tensor(
      const std::string& name,
      const std::vector<std::uint64_t>& shape,
      std::uint32_t type,
      const std::vector<std::byte>& data
  ) {
    string(name, name + " name");
    u32(static_cast<std::uint32_t>(shape.size()), name + " dimensions");
    for (std::uint64_t dimension : shape) {
      u64(dimension, name + " shape");
    }
    u32(type, name + " type");
    u64(data_.size(), name + " offset");
    data_.insert(data_.end(), data.begin(), data.end());
    data_.resize((data_.size() + kAlignment - 1) / kAlignment * kAlignment);
    ++tensors_;
    return *this;
  }

  /// The file. Requires: all metadata was added before the first tensor.
  std::vector<std::byte> finish() const {
    std::vector<std::byte> file = bytes_;
    put(file, "tensor count", tensors_);
    put(file, "metadata count", values_);
    if (!data_.empty()) {
      file.resize((file.size() + kAlignment - 1) / kAlignment * kAlignment);
      file.insert(file.end(), data_.begin(), data_.end());
    }
    return file;
  }

  /// Bytes before the tensor data.
  std::size_t header_bytes() const { return bytes_.size(); }
  /// Where each field lies. Strings have "<name> length" besides.
  const std::map<std::string, std::size_t>& fields() const { return fields_; }

  /// Overwrites a field of a finished file.
  template <class T>
  void put(std::vector<std::byte>& file, const std::string& field, T value)
      const {
    std::memcpy(file.data() + fields_.at(field), &value, sizeof(T));
  }

 private:
  static constexpr std::size_t kAlignment = 32;

  void raw(const void* from, std::size_t size, const std::string& field) {
    fields_[field] = bytes_.size();
    const auto* bytes = static_cast<const std::byte*>(from);
    bytes_.insert(bytes_.end(), bytes, bytes + size);
  }
  void u32(std::uint32_t value, const std::string& field) {
    raw(&value, 4, field);
  }
  void u64(std::uint64_t value, const std::string& field) {
    raw(&value, 8, field);
  }
  void string(const std::string& value, const std::string& field) {
    u64(value.size(), field + " length");
    raw(value.data(), value.size(), field);
  }
  void start_value(const std::string& key, GgufType type) {
    string(key, key + " key");
    u32(static_cast<std::uint32_t>(type), key + " type");
    ++values_;
  }
  void start_array(
      const std::string& key, GgufType element, std::uint64_t count
  ) {
    start_value(key, GgufType::kArray);
    u32(static_cast<std::uint32_t>(element), key + " element type");
    u64(count, key + " count");
  }

  std::vector<std::byte> bytes_;
  std::vector<std::byte> data_;
  std::map<std::string, std::size_t> fields_;
  std::uint64_t tensors_ = 0;
  std::uint64_t values_ = 0;
};

}  // namespace afterglow
