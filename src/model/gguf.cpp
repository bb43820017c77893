#include "model/gguf.h"

#include <algorithm>
#include <cstring>

namespace afterglow {
namespace {

constexpr std::uint64_t kMaxKey = 65535;  // the format's own limit
constexpr std::uint32_t kMaxDimensions = 4;
constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::uint64_t kMaxAlignment = 1 << 20;

// How a tensor type packs `elements` into `bytes`.
struct TensorType {
  const char* name;
  std::uint64_t elements;
  std::uint64_t bytes;
};

// By the type's number in the file; those without a name are retired.
constexpr TensorType kTensorTypes[] = {
    {"F32", 1, 4},        {"F16", 1, 2},        {"Q4_0", 32, 18},
    {"Q4_1", 32, 20},     {nullptr, 0, 0},      {nullptr, 0, 0},
    {"Q5_0", 32, 22},     {"Q5_1", 32, 24},     {"Q8_0", 32, 34},
    {"Q8_1", 32, 36},     {"Q2_K", 256, 84},    {"Q3_K", 256, 110},
    {"Q4_K", 256, 144},   {"Q5_K", 256, 176},   {"Q6_K", 256, 210},
    {"Q8_K", 256, 292},   {"IQ2_XXS", 256, 66}, {"IQ2_XS", 256, 74},
    {"IQ3_XXS", 256, 98}, {"IQ1_S", 256, 50},   {"IQ4_NL", 32, 18},
    {"IQ3_S", 256, 110},  {"IQ2_S", 256, 82},   {"IQ4_XS", 256, 136},
    {"I8", 1, 1},         {"I16", 1, 2},        {"I32", 1, 4},
    {"I64", 1, 8},        {"F64", 1, 8},        {"IQ1_M", 256, 56},
    {"BF16", 1, 2},       {nullptr, 0, 0},      {nullptr, 0, 0},
    {nullptr, 0, 0},      {"TQ1_0", 256, 54},   {"TQ2_0", 256, 66},
    {nullptr, 0, 0},      {nullptr, 0, 0},      {nullptr, 0, 0},
    {"MXFP4", 32, 17},
};

// Bytes of a fixed-size metadata type; 0 for the others.
std::uint64_t value_size(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool:
      return 1;
    case GgufType::kU16:
    case GgufType::kI16:
      return 2;
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kF32:
      return 4;
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      return 0;
  }
  return 0;
}

// Reads the header front to back; the first failure sticks.
class Cursor {
 public:
  Cursor(std::span<const std::byte> file, std::string where)
      : file_(file), where_(std::move(where)) {}

  bool ok() const { return status_.ok(); }
  const Error& error() const { return status_.error(); }
  std::uint64_t offset() const { return offset_; }
  std::uint64_t left() const { return file_.size() - offset_; }

  void fail(const std::string& why, Code code = Code::kCorrupt) {
    if (status_.ok()) {
      status_ = Error{code, where_ + ": " + why};
    }
  }

  template <class T>
  T integer(const std::string& what) {
    T value = 0;
    const auto bytes = take(sizeof(T), what);
    if (ok()) {
      std::memcpy(&value, bytes.data(), sizeof(T));
    }
    return value;
  }

  std::span<const std::byte> take(
      std::uint64_t bytes, const std::string& what
  ) {
    if (ok() && bytes > left()) {
      fail(
          what + " needs " + std::to_string(bytes) + " bytes, the file has " +
          std::to_string(left()) + " left at offset " + std::to_string(offset_)
      );
    }
    if (!ok()) {
      return {};
    }
    const auto result = file_.subspan(offset_, bytes);
    offset_ += bytes;
    return result;
  }

  std::string_view text(const std::string& what) {
    const auto length = integer<std::uint64_t>(what + " (its length)");
    const auto bytes = take(length, what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // A count of things of at least `smallest` bytes each.
  std::uint64_t count(std::uint64_t smallest, const std::string& what) {
    const auto value = integer<std::uint64_t>(what);
    if (ok() && value > left() / smallest) {
      fail(
          what + " " + std::to_string(value) + " does not fit into the " +
          std::to_string(left()) + " bytes left"
      );
    }
    return ok() ? value : 0;
  }

  GgufType value_type(const std::string& what) {
    const auto number = integer<std::uint32_t>(what);
    if (ok() && number > static_cast<std::uint32_t>(GgufType::kF64)) {
      fail(what + " " + std::to_string(number) + " is unknown");
    }
    return static_cast<GgufType>(number);
  }

 private:
  std::span<const std::byte> file_;
  std::string where_;
  std::uint64_t offset_ = 0;
  Status status_;
};

void read_array(Cursor& cursor, const std::string& what, GgufValue& value) {
  value.element = cursor.value_type("element type of " + what);
  if (cursor.ok() && value.element == GgufType::kArray) {
    cursor.fail(what + " is an array of arrays", Code::kUnsupported);
  }
  const bool strings = value.element == GgufType::kString;
  const std::uint64_t size = strings ? 8 : value_size(value.element);
  value.count = cursor.ok() ? cursor.count(size, "count of " + what) : 0;
  if (!strings) {
    value.bytes = cursor.take(value.count * size, what);
    return;
  }
  value.strings.reserve(value.count);
  for (std::uint64_t i = 0; i < value.count && cursor.ok(); ++i) {
    value.strings.push_back(cursor.text("an element of " + what));
  }
}

void check_booleans(
    Cursor& cursor, const std::string& what, const GgufValue& value
) {
  const bool is_bool =
      value.type == GgufType::kBool ||
      (value.type == GgufType::kArray && value.element == GgufType::kBool);
  const auto valid = [](std::byte byte) { return byte <= std::byte{1}; };
  if (is_bool && !std::all_of(value.bytes.begin(), value.bytes.end(), valid)) {
    cursor.fail(what + " holds a boolean other than 0 and 1");
  }
}

void read_metadata(Cursor& cursor, Gguf& gguf) {
  const std::string_view key = cursor.text("a metadata key");
  if (cursor.ok() && (key.empty() || key.size() > kMaxKey)) {
    cursor.fail("a metadata key has " + std::to_string(key.size()) + " bytes");
  }
  if (!cursor.ok()) {
    return;
  }
  const std::string what = "metadata '" + std::string(key) + "'";
  GgufValue value;
  value.type = cursor.value_type("type of " + what);
  if (!cursor.ok()) {
    return;
  }
  if (value.type == GgufType::kArray) {
    read_array(cursor, what, value);
  } else if (value.type == GgufType::kString) {
    value.strings.push_back(cursor.text(what));
  } else {
    value.bytes = cursor.take(value_size(value.type), what);
  }
  if (cursor.ok()) {
    check_booleans(cursor, what, value);
  }
  if (cursor.ok() &&
      !gguf.metadata.emplace(std::string(key), std::move(value)).second) {
    cursor.fail(what + " appears twice");
  }
}

// A tensor's entry; its data is looked up once the header's end is known.
struct Entry {
  RawTensor tensor;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

void size_tensor(
    Cursor& cursor, const std::string& what, std::uint32_t type, Entry& entry
) {
  if (type >= std::size(kTensorTypes) || kTensorTypes[type].name == nullptr) {
    cursor.fail(
        what + " has the unknown type number " + std::to_string(type),
        Code::kUnsupported
    );
    return;
  }
  const TensorType& info = kTensorTypes[type];
  RawTensor& tensor = entry.tensor;
  tensor.dtype = info.name;
  // Blocks run along the innermost dimension.
  if (tensor.shape.back() % info.elements != 0) {
    cursor.fail(
        what + " of type " + info.name + " has rows of " +
        std::to_string(tensor.shape.back()) + " elements, not a multiple of " +
        std::to_string(info.elements)
    );
    return;
  }
  std::optional<std::uint64_t> bytes =
      checked_multiply(tensor.shape.back() / info.elements, info.bytes);
  for (std::size_t i = 0; i + 1 < tensor.shape.size() && bytes; ++i) {
    bytes = checked_multiply(*bytes, tensor.shape[i]);
  }
  if (!bytes) {
    cursor.fail(what + " shape " + describe_shape(tensor.shape) + " overflows");
    return;
  }
  entry.bytes = *bytes;
}

Entry read_entry(Cursor& cursor) {
  Entry entry;
  entry.tensor.name = cursor.text("a tensor name");
  const std::string what = "tensor '" + entry.tensor.name + "'";
  const auto dimensions =
      cursor.integer<std::uint32_t>("dimensions of " + what);
  if (cursor.ok() && (dimensions == 0 || dimensions > kMaxDimensions)) {
    cursor.fail(what + " has " + std::to_string(dimensions) + " dimensions");
  }
  for (std::uint32_t i = 0; i < dimensions && cursor.ok(); ++i) {
    entry.tensor.shape.push_back(
        cursor.integer<std::uint64_t>("shape of " + what)
    );
    if (cursor.ok() && entry.tensor.shape.back() == 0) {
      cursor.fail(what + " has a dimension of size 0");
    }
  }
  std::reverse(entry.tensor.shape.begin(), entry.tensor.shape.end());
  const auto type = cursor.integer<std::uint32_t>("type of " + what);
  entry.offset = cursor.integer<std::uint64_t>("offset of " + what);
  if (cursor.ok()) {
    size_tensor(cursor, what, type, entry);
  }
  return entry;
}

std::uint64_t read_alignment(Cursor& cursor, const Gguf& gguf) {
  const auto found = gguf.metadata.find("general.alignment");
  if (found == gguf.metadata.end()) {
    return kDefaultAlignment;
  }
  std::uint32_t value = 0;
  if (found->second.type == GgufType::kU32) {
    std::memcpy(&value, found->second.bytes.data(), sizeof(value));
  }
  if (value == 0 || value > kMaxAlignment || (value & (value - 1)) != 0) {
    cursor.fail("general.alignment is not a u32 power of two up to 2^20");
    return kDefaultAlignment;
  }
  return value;
}

void place_tensors(
    Cursor& cursor,
    std::span<const std::byte> file,
    std::uint64_t alignment,
    std::vector<Entry>& entries,
    Gguf& gguf
) {
  if (entries.empty()) {
    return;
  }
  const std::uint64_t start =
      (cursor.offset() + alignment - 1) / alignment * alignment;
  if (start > file.size()) {
    cursor.fail("the file ends before its tensor data");
    return;
  }
  const auto data = file.subspan(start);
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.offset < b.offset;
  });
  std::uint64_t end = 0;
  for (Entry& entry : entries) {
    const std::string what = "tensor '" + entry.tensor.name + "' at offset " +
                             std::to_string(entry.offset);
    if (entry.offset % alignment != 0) {
      cursor.fail(
          what + " is not aligned to " + std::to_string(alignment) + " bytes"
      );
    } else if (entry.offset < end) {
      cursor.fail(what + " overlaps another tensor");
    } else if (entry.offset > data.size() || entry.bytes > data.size() - entry.offset) {
      cursor.fail(
          what + " of " + std::to_string(entry.bytes) + " bytes exceeds the " +
          std::to_string(data.size()) +
          " bytes of tensor data: is the file complete?"
      );
    }
    if (!cursor.ok()) {
      return;
    }
    end = entry.offset + entry.bytes;
    entry.tensor.bytes = data.subspan(entry.offset, entry.bytes);
    gguf.tensors.push_back(std::move(entry.tensor));
  }
}

void check_names(Cursor& cursor, const Gguf& gguf) {
  std::vector<std::string_view> names;
  for (const RawTensor& tensor : gguf.tensors) {
    names.push_back(tensor.name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) {
    cursor.fail("tensor '" + std::string(*twice) + "' appears twice");
  }
}

void check_version(Cursor& cursor) {
  const auto version = cursor.integer<std::uint32_t>("the version");
  if (!cursor.ok() || version == 2 || version == 3) {
    return;
  }
  const bool swapped = (version & 0xffff) == 0;
  cursor.fail(
      swapped ? "the file is big-endian"
              : "version " + std::to_string(version) +
                    "; versions 2 and 3 are supported",
      Code::kUnsupported
  );
}

}  // namespace

Result<Gguf> parse_gguf(
    std::span<const std::byte> file, const std::string& name
) {
  // Bytes of the smallest metadata value and the smallest tensor entry.
  constexpr std::uint64_t kSmallestValue = 8 + 1 + 4 + 1;
  constexpr std::uint64_t kSmallestEntry = 8 + 4 + 8 + 4 + 8;

  Cursor cursor(file, "[model.gguf] " + name);
  const auto magic = cursor.take(4, "the magic number");
  if (cursor.ok() && std::memcmp(magic.data(), "GGUF", 4) != 0) {
    cursor.fail("not a GGUF file");
  }
  check_version(cursor);
  const auto tensors = cursor.count(kSmallestEntry, "the tensor count");
  const auto values = cursor.count(kSmallestValue, "the metadata count");
  Gguf gguf;
  for (std::uint64_t i = 0; i < values && cursor.ok(); ++i) {
    read_metadata(cursor, gguf);
  }
  std::vector<Entry> entries;
  for (std::uint64_t i = 0; i < tensors && cursor.ok(); ++i) {
    entries.push_back(read_entry(cursor));
  }
  if (cursor.ok()) {
    const std::uint64_t alignment = read_alignment(cursor, gguf);
    place_tensors(cursor, file, alignment, entries, gguf);
  }
  if (cursor.ok()) {
    check_names(cursor, gguf);
  }
  if (!cursor.ok()) {
    return cursor.error();
  }
  return gguf;
}

}  // namespace afterglow
