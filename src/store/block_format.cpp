#include "store/block_format.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <map>
#include <optional>

namespace afterglow {

static_assert(
    std::endian::native == std::endian::little,
    "block files are little-endian and read without conversion"
);

namespace {

constexpr std::string_view kSuffix = ".safetensors";
constexpr std::size_t kWordDigits = 16;
/// Of a layer whose shape only the header tells; keeps products below 2^64.
constexpr std::uint64_t kMaxDimension = 1 << 16;
constexpr std::array kMetadataKeys = {
    "sum", "format", "fingerprint", "spec", "parent", "start", "n", "sums"};

Error corrupt(const std::string& what) {
  return {Code::kCorrupt, what};
}

std::string hex_word(std::uint64_t value) {
  std::array<std::uint8_t, 8> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(value >> (56 - 8 * i));
  }
  return hex(bytes);
}

std::optional<std::uint64_t> parse_word(std::string_view text) {
  std::uint64_t value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, 16);
  bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || hex_word(value) != text) {
    return std::nullopt;
  }
  return value;
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, 10);
  bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || std::to_string(value) != text) {
    return std::nullopt;
  }
  return value;
}

/// `tokens` and two tensors a layer, at a width.
std::vector<TensorEntry> tensors_for(
    const KvLayout& layout, std::size_t width
) {
  std::vector<TensorEntry> tensors;
  std::uint64_t at = 0;
  auto add = [&](std::string name,
                 const char* dtype,
                 std::vector<std::uint64_t> shape,
                 std::size_t bytes) {
    tensors.push_back({std::move(name), dtype, std::move(shape), at, at + bytes}
    );
    at += bytes;
  };
  add("tokens", "U32", {kPageTokens}, kTokenBytes);
  for (std::size_t i = 0; i < layout.layers.size(); ++i) {
    const LayerKv& kv = layout.layers[i];
    std::string prefix = "layers." + std::to_string(i);
    const char* type = to_string(kv.type);
    add(prefix + ".k",
        type,
        {kv.kv_heads, kv.k_dim, width},
        layout.k_bytes(i, width));
    add(prefix + ".v",
        type,
        {kv.kv_heads, width, kv.v_dim},
        layout.v_bytes(i, width));
  }
  return tensors;
}

std::string join_sums(std::span<const std::uint64_t> sums) {
  std::string text;
  for (std::uint64_t sum : sums) {
    text += (text.empty() ? "" : ",") + hex_word(sum);
  }
  return text;
}

Result<std::vector<std::uint64_t>> split_sums(
    std::string_view text, std::size_t count
) {
  if (text.size() != count * (kWordDigits + 1) - 1) {
    return corrupt("sums: not one for each tensor");
  }
  std::vector<std::uint64_t> sums;
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t at = i * (kWordDigits + 1);
    auto sum = parse_word(text.substr(at, kWordDigits));
    if (!sum || (i > 0 && text[at - 1] != ',')) {
      return corrupt("sums: not comma-separated hex");
    }
    sums.push_back(*sum);
  }
  return sums;
}

/// The header's sum, its own digits counted as '0'.
/// Requires: before_data reaches past the digits.
std::string head_sum(std::span<const std::byte> before_data) {
  std::vector<std::byte> copy(before_data.begin(), before_data.end());
  std::memset(copy.data() + kSumOffset, '0', kSumDigits);
  return hex(xxh3_128(copy));
}

/// Pads with spaces so that tokens end, and KV begins, on kKvAlignment.
std::size_t kv_offset_for(std::size_t json_bytes) {
  std::size_t bytes = 8 + json_bytes + kTokenBytes;
  return (bytes + kKvAlignment - 1) / kKvAlignment * kKvAlignment;
}

/// Metadata by key, all there, in order.
Result<std::map<std::string, std::string>> check_metadata(
    const TensorHeader& header
) {
  const auto& metadata = header.metadata;
  if (metadata.size() < 2 || metadata[0].first != "sum" ||
      metadata[1].first != "format") {
    return corrupt("metadata: does not begin with sum and format");
  }
  if (metadata[1].second != kBlockFormat) {
    return Error{
        Code::kUnsupported,
        "format: " + metadata[1].second + ", this build reads " +
            std::string(kBlockFormat)};
  }
  if (metadata.size() != kMetadataKeys.size()) {
    return corrupt("metadata: not the keys of format 1");
  }
  std::map<std::string, std::string> fields;
  for (std::size_t i = 0; i < kMetadataKeys.size(); ++i) {
    if (metadata[i].first != kMetadataKeys[i]) {
      return corrupt("metadata: not the keys of format 1");
    }
    fields.insert(metadata[i]);
  }
  return fields;
}

/// The file up to the tokens, split and its sum verified.
struct RawHead {
  TensorHeader header;
  std::map<std::string, std::string> fields;  // of its metadata
  std::size_t json_bytes = 0;                 // without padding
  std::size_t data_offset = 0;
};

Result<RawHead> decode_raw(std::span<const std::byte> head) {
  if (head.size() < kSumOffset + kSumDigits) {
    return corrupt("header: too short for its sum");
  }
  std::uint64_t length;
  std::memcpy(&length, head.data(), sizeof length);
  if (length > kMaxHeaderBytes || length > head.size() - 8) {
    return corrupt("header: length " + std::to_string(length));
  }
  RawHead raw;
  raw.data_offset = 8 + static_cast<std::size_t>(length);
  if (raw.data_offset < kSumOffset + kSumDigits) {
    return corrupt("header: too short for its sum");
  }
  std::string_view text(
      reinterpret_cast<const char*>(head.data()) + 8, raw.data_offset - 8
  );
  if (text.substr(kSumOffset - 8, kSumDigits) !=
      head_sum(head.first(raw.data_offset))) {
    return corrupt("sum: the header's bytes have another");
  }
  Result<TensorHeader> header = parse_tensor_header(text);
  if (!header) {
    return corrupt("header: " + header.error().message);
  }
  raw.header = std::move(*header);
  raw.json_bytes = text.find_last_not_of(' ') + 1;
  auto fields = check_metadata(raw.header);
  if (!fields) {
    return fields.error();
  }
  raw.fields = std::move(*fields);
  return raw;
}

Status check_tensors(
    const std::vector<TensorEntry>& found,
    const std::vector<TensorEntry>& wanted
) {
  if (found.size() != wanted.size()) {
    return corrupt(
        "tensors: " + std::to_string(found.size()) + ", the model has " +
        std::to_string(wanted.size())
    );
  }
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const TensorEntry& tensor = found[i];
    const std::string& name = wanted[i].name;
    if (tensor.name != name) {
      return corrupt("tensors: " + tensor.name + " where " + name + " belongs");
    }
    if (tensor.dtype != wanted[i].dtype) {
      return corrupt(name + ": dtype " + tensor.dtype);
    }
    if (tensor.shape != wanted[i].shape) {
      return corrupt(name + ": shape is not the model's");
    }
    if (tensor.begin != at) {
      return corrupt(
          name + ": " + (tensor.begin < at ? "overlaps" : "a gap before it")
      );
    }
    if (tensor.end != wanted[i].end) {
      return corrupt(name + ": data_offsets do not fit the shape");
    }
    at = tensor.end;
  }
  return {};
}

std::optional<KvType> parse_type(std::string_view text) {
  for (KvType type : {KvType::kF16, KvType::kBF16, KvType::kF32}) {
    if (text == to_string(type)) {
      return type;
    }
  }
  return std::nullopt;
}

/// The layout that a header's tensors have; check_tensors with it checks them.
Result<KvLayout> layout_of(const std::vector<TensorEntry>& tensors) {
  if (tensors.size() % 2 == 0) {
    return corrupt("tensors: not tokens and two for each layer");
  }
  KvLayout layout;
  for (std::size_t i = 1; i < tensors.size(); i += 2) {
    const TensorEntry& k = tensors[i];
    const TensorEntry& v = tensors[i + 1];
    auto type = parse_type(k.dtype);
    if (!type) {
      return corrupt(k.name + ": dtype " + k.dtype);
    }
    for (const TensorEntry* tensor : {&k, &v}) {
      bool is_sane = tensor->shape.size() == 3;
      for (std::uint64_t dimension : tensor->shape) {
        is_sane = is_sane && dimension > 0 && dimension <= kMaxDimension;
      }
      if (!is_sane) {
        return corrupt(tensor->name + ": shape is no layer's");
      }
    }
    layout.layers.push_back(
        {static_cast<std::uint32_t>(k.shape[0]),
         static_cast<std::uint32_t>(k.shape[1]),
         static_cast<std::uint32_t>(v.shape[2]),
         *type}
    );
  }
  return layout;
}

Result<std::vector<Token>> decode_tokens(
    std::span<const std::byte> data, std::size_t n
) {
  std::array<std::uint32_t, kPageTokens> words;
  std::memcpy(words.data(), data.data(), kTokenBytes);
  constexpr auto kMaxToken =
      static_cast<std::uint32_t>(std::numeric_limits<Token>::max());
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < kPageTokens; ++i) {
    if (i < n ? words[i] > kMaxToken : words[i] != 0) {
      return corrupt("tokens: not " + std::to_string(n) + " ids, then zeros");
    }
    if (i < n) {
      tokens.push_back(static_cast<Token>(words[i]));
    }
  }
  return tokens;
}

}  // namespace

std::string ModelKey::folder() const {
  return hex(fingerprint) + "-" + hex(spec);
}

std::vector<std::byte> encode_block_head(
    const ModelKey& key,
    const Block& block,
    std::span<const std::uint64_t> kv_sums
) {
  CHECK(kv_sums.size() == 2 * key.layout.layers.size());
  std::array<std::uint32_t, kPageTokens> words{};
  std::copy(block.tokens.begin(), block.tokens.end(), words.begin());
  auto token_bytes = std::as_bytes(std::span(words));
  std::vector<std::uint64_t> sums = {xxh3_64(token_bytes)};
  sums.insert(sums.end(), kv_sums.begin(), kv_sums.end());

  TensorHeader header;
  header.metadata = {
      {"sum", std::string(kSumDigits, '0')},
      {"format", std::string(kBlockFormat)},
      {"fingerprint", hex(key.fingerprint)},
      {"spec", hex(key.spec)},
      {"parent", block.parent.hex()},
      {"start", std::to_string(block.start)},
      {"n", std::to_string(block.tokens.size())},
      {"sums", join_sums(sums)},
  };
  header.tensors =
      tensors_for(key.layout, KvLayout::width_for(block.tokens.size()));
  std::string json = format_tensor_header(header);
  std::size_t kv_offset = kv_offset_for(json.size());
  std::size_t data_offset = kv_offset - kTokenBytes;
  json.resize(data_offset - 8, ' ');
  CHECK(json.size() <= kMaxHeaderBytes);

  std::vector<std::byte> head(kv_offset);
  std::uint64_t length = json.size();
  std::memcpy(head.data(), &length, sizeof length);
  std::memcpy(head.data() + 8, json.data(), json.size());
  std::memcpy(head.data() + data_offset, words.data(), kTokenBytes);
  std::string sum = head_sum(std::span(head).first(data_offset));
  std::memcpy(head.data() + kSumOffset, sum.data(), kSumDigits);
  return head;
}

std::uint64_t block_file_bytes(const ModelKey& key, const Block& block) {
  // The sums' values do not change the length.
  std::vector<std::uint64_t> sums(2 * key.layout.layers.size());
  std::size_t width = KvLayout::width_for(block.tokens.size());
  return encode_block_head(key, block, sums).size() +
         key.layout.block_bytes(width);
}

Result<std::size_t> needed_head_bytes(
    std::span<const std::byte, 8> bytes, std::uint64_t file_bytes
) {
  std::uint64_t length;
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > kMaxHeaderBytes) {
    return corrupt(
        "header: length " + std::to_string(length) + " is beyond " +
        std::to_string(kMaxHeaderBytes)
    );
  }
  if (8 + length + kTokenBytes > file_bytes) {
    return corrupt(
        "header: length " + std::to_string(length) + " in a file of " +
        std::to_string(file_bytes) + " bytes"
    );
  }
  return 8 + static_cast<std::size_t>(length) + kTokenBytes;
}

Result<BlockHead> decode_block_head(
    const ModelKey& key,
    const BlockId& name,
    std::span<const std::byte> head,
    std::uint64_t file_bytes
) {
  Result<RawHead> raw = decode_raw(head);
  if (!raw) {
    return raw.error();
  }
  auto& fields = raw->fields;
  if (fields["fingerprint"] != hex(key.fingerprint)) {
    return Error{Code::kUnsupported, "fingerprint: another model's block"};
  }
  if (fields["spec"] != hex(key.spec)) {
    return Error{Code::kUnsupported, "spec: computed in another way"};
  }
  Result<BlockId> parent = BlockId::parse(fields["parent"]);
  if (!parent) {
    return corrupt("parent: not 64 hex digits");
  }
  auto start = parse_number(fields["start"]);
  if (!start || *start % kPageTokens != 0) {
    return corrupt("start: not a multiple of " + std::to_string(kPageTokens));
  }
  auto n = parse_number(fields["n"]);
  if (!n || *n == 0 || *n > kPageTokens) {
    return corrupt("n: not from 1 to " + std::to_string(kPageTokens));
  }

  BlockHead result;
  std::size_t count = static_cast<std::size_t>(*n);
  result.width = KvLayout::width_for(count);
  if (Status tensors = check_tensors(
          raw->header.tensors, tensors_for(key.layout, result.width)
      );
      !tensors) {
    return tensors.error();
  }
  result.kv_offset = raw->data_offset + kTokenBytes;
  if (result.kv_offset != kv_offset_for(raw->json_bytes)) {
    return corrupt("header: padding does not put KV on its boundary");
  }
  result.file_bytes = result.kv_offset + key.layout.block_bytes(result.width);
  if (file_bytes != result.file_bytes) {
    return corrupt(
        "file: " + std::to_string(file_bytes) + " bytes, its header says " +
        std::to_string(result.file_bytes)
    );
  }
  if (head.size() < result.kv_offset) {
    return corrupt("file: ends inside its tokens");
  }

  auto sums = split_sums(fields["sums"], raw->header.tensors.size());
  if (!sums) {
    return sums.error();
  }
  auto token_bytes = head.subspan(raw->data_offset, kTokenBytes);
  if (xxh3_64(token_bytes) != sums->front()) {
    return corrupt("tokens: bytes have another sum");
  }
  auto tokens = decode_tokens(token_bytes, count);
  if (!tokens) {
    return tokens.error();
  }
  result.block = make_block(*parent, *start, *tokens);
  if (result.block->id != name) {
    return corrupt("id: the file's name is not that of its content");
  }
  result.kv_sums.assign(sums->begin() + 1, sums->end());
  return result;
}

Result<ModelKey> key_of_head(std::span<const std::byte> head) {
  Result<RawHead> raw = decode_raw(head);
  if (!raw) {
    return raw.error();
  }
  // Both digests are written as ids are: 64 hex digits.
  Result<BlockId> fingerprint = BlockId::parse(raw->fields["fingerprint"]);
  if (!fingerprint) {
    return corrupt("fingerprint: not 64 hex digits");
  }
  Result<BlockId> spec = BlockId::parse(raw->fields["spec"]);
  if (!spec) {
    return corrupt("spec: not 64 hex digits");
  }
  Result<KvLayout> layout = layout_of(raw->header.tensors);
  if (!layout) {
    return layout.error();
  }
  return ModelKey{fingerprint->bytes, spec->bytes, std::move(*layout)};
}

Result<ForeignHead> decode_foreign_head(std::span<const std::byte> head) {
  Result<RawHead> raw = decode_raw(head);
  if (!raw) {
    return raw.error();
  }
  Result<BlockId> parent = BlockId::parse(raw->fields["parent"]);
  auto start = parse_number(raw->fields["start"]);
  if (!parent || !start) {
    return corrupt("parent or start: unreadable");
  }
  return ForeignHead{*parent, *start};
}

std::string block_file_name(const BlockId& id) {
  return id.hex() + std::string(kSuffix);
}

Result<BlockId> parse_block_file_name(std::string_view name) {
  if (!name.ends_with(kSuffix)) {
    return Error{
        Code::kInvalidArgument, "[store.index] not a block file's name"};
  }
  return BlockId::parse(name.substr(0, name.size() - kSuffix.size()));
}

}  // namespace afterglow
