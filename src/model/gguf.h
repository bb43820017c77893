#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/tensor.h"

namespace afterglow {

/// A metadata value's type, with the numbers of the format.
enum class GgufType : std::uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

/// A metadata value. Points into the file.
struct GgufValue {
  GgufType type = GgufType::kU8;
  GgufType element = GgufType::kU8;       // of an array
  std::uint64_t count = 1;                // elements of an array
  std::span<const std::byte> bytes;       // of a number, or of an array of them
  std::vector<std::string_view> strings;  // a string, or an array of them
};

/// The content of a GGUF file; everything in it points into its bytes.
struct Gguf {
  std::map<std::string, GgufValue> metadata;
  std::vector<RawTensor> tensors;  // in the order of their data
};

/// Reads the header of a GGUF file of version 2 or 3 and checks all of it:
/// every length, count and offset against the file, names unique, tensors
/// aligned, inside the file and apart from each other.
/// `name` is the file's name in messages.
/// Errors: kCorrupt naming the field; kUnsupported for another version, byte
/// order, tensor type, or arrays of arrays.
/// Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
Result<Gguf> parse_gguf(
    std::span<const std::byte> file, const std::string& name
);

/// Reads typed metadata. The first value that is missing or of a wrong type
/// becomes status(); what is read after that is meaningless.
class GgufFields {
 public:
  /// Requires: `gguf` outlives this. `where` starts messages.
  GgufFields(const Gguf& gguf, std::string where);

  const GgufValue* find(const std::string& key) const;
  bool has(const std::string& key) const { return find(key) != nullptr; }

  /// A positive integer below 2^31, also out of an array whose elements are
  /// all equal (some writers repeat a count for each layer).
  std::size_t count(const std::string& key);
  std::size_t count(const std::string& key, std::size_t fallback);
  /// Any integer; nothing where the key is absent.
  std::optional<std::int64_t> integer(const std::string& key);
  /// A finite number.
  double number(const std::string& key);
  double number(const std::string& key, double fallback);
  std::optional<bool> boolean(const std::string& key);
  std::string text(const std::string& key);
  std::string text(const std::string& key, const std::string& fallback);
  /// Arrays; empty where the key is absent.
  std::vector<std::string> texts(const std::string& key);
  std::vector<float> floats(const std::string& key);
  std::vector<std::int32_t> integers(const std::string& key);

  /// Records an error about a key unless there is one already.
  void fail(Code code, const std::string& key, const std::string& why);
  const Status& status() const { return status_; }

 private:
  const Gguf& gguf_;
  std::string where_;
  Status status_;
};

}  // namespace afterglow
