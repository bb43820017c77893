#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/mapped_file.h"
#include "model/safetensors.h"

namespace afterglow {

/// A file of expected values that a script under tests/parity made.
class Golden {
 public:
  /// `name` is relative to tests/parity/golden. Throws, which fails the test,
  /// where it cannot be read.
  explicit Golden(const std::string& name) {
    const std::string path = directory() + name;
    auto file = MappedFile::open(path);
    if (!file) {
      throw std::runtime_error(file.error().message);
    }
    file_ = std::move(*file);
    auto content = parse_safetensors(file_.bytes(), path);
    if (!content) {
      throw std::runtime_error(content.error().message);
    }
    content_ = std::move(*content);
  }

  static std::string directory() {
    return std::string(AFTERGLOW_SOURCE_DIR) + "/tests/parity/golden/";
  }

  const RawTensor& tensor(const std::string& name) const {
    for (const RawTensor& tensor : content_.tensors) {
      if (tensor.name == name) {
        return tensor;
      }
    }
    throw std::runtime_error("no '" + name + "' in the golden file");
  }

  template <class T>
  std::vector<T> values(const std::string& name) const {
    const auto bytes = tensor(name).bytes;
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

 private:
  MappedFile file_;
  Safetensors content_;
};

}  // namespace afterglow
