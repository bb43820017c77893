#include "store/mlx_cache_file_header.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>

#include "base/check.h"

namespace afterglow {

namespace {

using Json = nlohmann::ordered_json;
using Metadata = std::map<std::string, std::string>;

constexpr std::size_t kDataAlignment = 64;
constexpr int kMaxDepth = 3;  // file, tensor, shape
constexpr std::size_t kMaxLayers = 4096;
constexpr std::uint64_t kMaxDimension = std::uint64_t{1} << 31;
constexpr std::uint64_t kMaxArrayBytes = std::uint64_t{1} << 50;
constexpr std::size_t kShownChars = 60;

/// Classes of mlx_lm 0.32.2 that are known and not read, and why.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9>
    kOtherClasses = {{
        {"QuantizedKVCache", "its KV is quantized; make it without --kv-bits"},
        {"RotatingKVCache",
         "it forgets old tokens; make it without --max-kv-size"},
        {"ConcatenateKVCache", "it is not what cache_prompt writes"},
        {"ChunkedKVCache", "it forgets old tokens"},
        {"ArraysCache", "it is a state, not KV"},
        {"MambaCache", "it is a state, not KV"},
        {"CacheList", "its layers have several caches"},
        {"BatchKVCache", "it holds several prompts"},
        {"BatchRotatingKVCache", "it holds several prompts"},
    }};

Error corrupt(std::string what) {
  return {Code::kCorrupt, std::move(what)};
}

/// Text from a file, fit for a message.
std::string shown(std::string_view text) {
  std::string out = "'";
  for (char c : text.substr(0, kShownChars)) {
    out += c >= 0x20 && c < 0x7f ? c : '?';
  }
  return out + (text.size() > kShownChars ? "...'" : "'");
}

/// Parses JSON that has no key twice in one object and is not deep.
Result<Json> parse_json(std::string_view text) {
  std::string problem;
  std::vector<std::set<std::string>> keys;
  auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if (event == Event::object_start) {
      keys.emplace_back();
    } else if (event == Event::object_end) {
      keys.pop_back();
    } else if (event == Event::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys.back().insert(key).second && problem.empty()) {
        problem = "header: " + shown(key) + " appears twice";
      }
    }
    if (depth > kMaxDepth && problem.empty()) {
      problem = "header: nested too deep";
    }
    return true;
  };
  Json json = Json::parse(text, check, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) {
    return corrupt("header: not a JSON object");
  }
  if (!problem.empty()) {
    return corrupt(problem);
  }
  return json;
}

Result<std::uint64_t> number(const Json& json, const std::string& where) {
  if (!json.is_number_unsigned()) {
    return corrupt(where + ": expected a whole number");
  }
  return json.get<std::uint64_t>();
}

Result<TensorEntry> parse_tensor(const std::string& name, const Json& json) {
  std::string where = "array " + shown(name);
  if (!json.is_object() || json.size() != 3 || !json.contains("dtype") ||
      !json.contains("shape") || !json.contains("data_offsets")) {
    return corrupt(where + ": expected dtype, shape and data_offsets");
  }
  const Json& dtype = json["dtype"];
  const Json& shape = json["shape"];
  const Json& offsets = json["data_offsets"];
  if (!dtype.is_string() || !shape.is_array() || !offsets.is_array() ||
      offsets.size() != 2 || shape.size() > 8) {
    return corrupt(where + ": dtype, shape or data_offsets of a wrong kind");
  }
  TensorEntry tensor;
  tensor.name = name;
  tensor.dtype = dtype.get<std::string>();
  std::uint64_t bytes = mlx_element_bytes(tensor.dtype);
  if (bytes == 0) {
    return Error{
        Code::kUnsupported,
        where + ": type " + shown(tensor.dtype) +
            "; F16, BF16 and F32 are read"};
  }
  for (const Json& item : shape) {
    auto dimension = number(item, where + ": shape");
    if (!dimension) {
      return dimension.error();
    }
    if (*dimension > kMaxDimension ||
        bytes > kMaxArrayBytes / std::max<std::uint64_t>(*dimension, 1)) {
      return corrupt(where + ": absurd shape");
    }
    bytes *= *dimension;
    tensor.shape.push_back(*dimension);
  }
  auto begin = number(offsets[0], where + ": data_offsets");
  auto end = number(offsets[1], where + ": data_offsets");
  if (!begin || !end) {
    return begin ? end.error() : begin.error();
  }
  tensor.begin = *begin;
  tensor.end = *end;
  if (tensor.end < tensor.begin || tensor.end - tensor.begin != bytes) {
    return corrupt(where + ": data_offsets do not fit its shape");
  }
  return tensor;
}

Status check_tiling(
    const std::map<std::string, TensorEntry>& tensors, std::uint64_t data_bytes
) {
  std::vector<const TensorEntry*> order;
  for (const auto& [name, tensor] : tensors) {
    order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(), [](auto* a, auto* b) {
    return std::tie(a->begin, a->end) < std::tie(b->begin, b->end);
  });
  std::uint64_t at = 0;
  for (const TensorEntry* tensor : order) {
    if (tensor->begin != at) {
      return corrupt(
          "array " + shown(tensor->name) +
          (tensor->begin < at ? ": overlaps another" : ": a gap before it")
      );
    }
    at = tensor->end;
  }
  if (at != data_bytes) {
    return corrupt(
        "file: " + std::to_string(data_bytes) +
        " bytes of data, but arrays of " + std::to_string(at)
    );
  }
  return {};
}

Result<Metadata> parse_metadata(const Json& json) {
  if (!json.is_object()) {
    return corrupt("__metadata__: not an object");
  }
  Metadata metadata;
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) {
      return corrupt("__metadata__ " + shown(key) + ": not a string");
    }
    metadata.emplace(key, value.get<std::string>());
  }
  return metadata;
}

/// Takes "<part>.0", "<part>.1", ... out of the metadata.
std::vector<std::string> take_list(
    Metadata& metadata, const std::string& part
) {
  std::vector<std::string> items;
  for (;;) {
    auto found = metadata.find(part + "." + std::to_string(items.size()));
    if (found == metadata.end() || items.size() > kMaxLayers) {
      return items;
    }
    items.push_back(std::move(found->second));
    metadata.erase(found);
  }
}

Status check_classes(const std::vector<std::string>& classes) {
  if (classes.empty() || classes.size() > kMaxLayers) {
    return corrupt("__metadata__: no list of layers as mlx_lm writes it");
  }
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (classes[i] == "KVCache") {
      continue;
    }
    std::string where =
        "layer " + std::to_string(i) + ": a " + shown(classes[i]);
    for (const auto& [name, why] : kOtherClasses) {
      if (classes[i] == name) {
        return Error{
            Code::kUnsupported,
            where + " cannot be taken over: " + std::string(why)};
      }
    }
    return Error{
        Code::kUnsupported, where + " is no cache that this version knows"};
  }
  return {};
}

/// What is left in the metadata under "<part>.", and nothing else.
Result<std::vector<std::pair<std::string, std::string>>> take_user(
    Metadata& metadata, const std::string& part
) {
  std::vector<std::pair<std::string, std::string>> user;
  for (auto& [key, value] : metadata) {
    if (key.compare(0, part.size() + 1, part + ".") != 0) {
      return corrupt(
          "__metadata__ " + shown(key) + ": not as mlx_lm writes it"
      );
    }
    user.emplace_back(key.substr(part.size() + 1), std::move(value));
  }
  return user;
}

/// Checks that each layer's third array is listed as a number, and that
/// nothing else is.
Status take_scalars(Metadata& metadata, std::size_t layers) {
  metadata.erase("2.0");
  std::set<std::string> listed;
  for (std::size_t i = 1; i <= layers; ++i) {
    std::string item = "2." + std::to_string(i);
    auto name = metadata.find(item + ".0");
    auto kind = metadata.find(item + ".1");
    if (name == metadata.end() || kind == metadata.end()) {
      return corrupt("__metadata__ " + item + ": missing");
    }
    if (kind->second != "scalar") {
      return corrupt("__metadata__ " + item + ": no scalar");
    }
    listed.insert(name->second);
    metadata.erase(name);
    metadata.erase(kind);
  }
  for (std::size_t i = 0; i < layers; ++i) {
    if (listed.count(std::to_string(i) + ".2") == 0) {
      return corrupt(
          "__metadata__ 2: array " + std::to_string(i) + ".2 is not listed"
      );
    }
  }
  return {};
}

bool is_kv_type(std::string_view dtype) {
  return dtype == "F16" || dtype == "BF16" || dtype == "F32";
}

Status check_layer(std::size_t index, const MlxCacheHeader::Layer& layer) {
  std::string where = "layer " + std::to_string(index);
  for (const TensorEntry* tensor : {&layer.k, &layer.v}) {
    if (!is_kv_type(tensor->dtype)) {
      return corrupt(where + ": KV of type " + tensor->dtype);
    }
    if (tensor->shape.size() != 4 || tensor->shape[0] != 1) {
      return corrupt(where + ": shape is not [1, kv_heads, tokens, dim]");
    }
  }
  if (layer.k.shape[1] != layer.v.shape[1] ||
      layer.k.shape[2] != layer.v.shape[2]) {
    return corrupt(where + ": K and V of different shape");
  }
  if (layer.offset &&
      ((layer.offset->dtype != "I32" && layer.offset->dtype != "I64") ||
       layer.offset->end - layer.offset->begin !=
           mlx_element_bytes(layer.offset->dtype))) {
    return corrupt(where + ": its number of tokens is not a whole number");
  }
  return {};
}

Status take_layers(
    std::map<std::string, TensorEntry>& tensors,
    std::size_t count,
    bool with_offset,
    MlxCacheHeader& header
) {
  auto take = [&](std::size_t layer, int part) -> Result<TensorEntry> {
    std::string name = std::to_string(layer) + "." + std::to_string(part);
    auto found = tensors.find(name);
    if (found == tensors.end()) {
      return corrupt("array '" + name + "': missing");
    }
    TensorEntry tensor = std::move(found->second);
    tensors.erase(found);
    return tensor;
  };
  for (std::size_t i = 0; i < count; ++i) {
    auto k = take(i, 0);
    auto v = take(i, 1);
    if (!k || !v) {
      return k ? v.error() : k.error();
    }
    MlxCacheHeader::Layer layer{std::move(*k), std::move(*v), {}};
    if (with_offset) {
      auto offset = take(i, 2);
      if (!offset) {
        return offset.error();
      }
      layer.offset = std::move(*offset);
    }
    if (Status checked = check_layer(i, layer); !checked) {
      return checked;
    }
    header.layers.push_back(std::move(layer));
  }
  if (!tensors.empty()) {
    return corrupt(
        "array " + shown(tensors.begin()->first) + ": belongs to no layer"
    );
  }
  return {};
}

Json tensor_json(const TensorEntry& tensor) {
  Json json;
  json["dtype"] = tensor.dtype;
  json["shape"] = tensor.shape;
  json["data_offsets"] = {tensor.begin, tensor.end};
  return json;
}

}  // namespace

const std::string* MlxCacheHeader::find(std::string_view key) const {
  for (const auto& [name, value] : metadata) {
    if (name == key) {
      return &value;
    }
  }
  return nullptr;
}

std::uint64_t mlx_element_bytes(std::string_view dtype) {
  if (dtype == "F16" || dtype == "BF16") {
    return 2;
  }
  if (dtype == "F32" || dtype == "I32") {
    return 4;
  }
  return dtype == "I64" ? 8 : 0;
}

std::string format_mlx_cache_header(const MlxCacheHeader& header) {
  Json metadata;
  Json tensors;
  for (const auto& [key, value] : header.metadata) {
    metadata["0." + key] = value;
  }
  for (std::size_t i = 0; i < header.layers.size(); ++i) {
    metadata["1." + std::to_string(i)] = "KVCache";
  }
  metadata["2.0"] = "";
  for (std::size_t i = 0; i < header.layers.size(); ++i) {
    const MlxCacheHeader::Layer& layer = header.layers[i];
    CHECK(layer.offset.has_value());
    std::string item = "2." + std::to_string(i + 1);
    metadata[item + ".0"] = layer.offset->name;
    metadata[item + ".1"] = "scalar";
    for (const TensorEntry* tensor : {&layer.k, &layer.v, &*layer.offset}) {
      tensors[tensor->name] = tensor_json(*tensor);
    }
  }
  Json json;
  json["__metadata__"] = std::move(metadata);
  json.update(tensors);
  std::string text = json.dump(
      -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace
  );
  std::size_t whole = 8 + text.size();
  text.append((kDataAlignment - whole % kDataAlignment) % kDataAlignment, ' ');
  return text;
}

Result<MlxCacheHeader> parse_mlx_cache_header(
    std::string_view text, std::uint64_t data_bytes
) {
  auto json = parse_json(text);
  if (!json) {
    return json.error();
  }
  auto found = json->find("__metadata__");
  if (found == json->end()) {
    return corrupt("__metadata__: missing; this is no prompt cache of mlx_lm");
  }
  auto metadata = parse_metadata(*found);
  if (!metadata) {
    return metadata.error();
  }
  // "2.0" is the empty head of the list of scalars, or the first class.
  auto head = metadata->find("2.0");
  bool is_new = head != metadata->end() && head->second.empty();
  std::vector<std::string> classes = take_list(*metadata, is_new ? "1" : "2");
  if (Status checked = check_classes(classes); !checked) {
    return checked.error();
  }
  if (is_new) {
    Status taken = take_scalars(*metadata, classes.size());
    if (!taken) {
      return taken.error();
    }
  } else if (take_list(*metadata, "0") != std::vector<std::string>(classes.size())) {
    return corrupt("__metadata__ 0: a layer's state is not that of KV");
  }
  std::map<std::string, TensorEntry> tensors;
  for (const auto& [name, value] : json->items()) {
    if (name == "__metadata__") {
      continue;
    }
    auto tensor = parse_tensor(name, value);
    if (!tensor) {
      return tensor.error();
    }
    tensors.emplace(name, std::move(*tensor));
  }
  if (Status tiled = check_tiling(tensors, data_bytes); !tiled) {
    return tiled.error();
  }
  MlxCacheHeader header;
  auto user = take_user(*metadata, is_new ? "0" : "1");
  if (!user) {
    return user.error();
  }
  header.metadata = std::move(*user);
  Status taken = take_layers(tensors, classes.size(), is_new, header);
  if (!taken) {
    return taken.error();
  }
  return header;
}

}  // namespace afterglow
