#include "model/directory.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "model/json.h"
#include "model/text_file.h"

namespace afterglow {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

Result<std::vector<std::string>> names_in_index(
    const std::string& text, const std::string& where
) {
  const auto index = parse_json(text, where);
  if (!index) {
    return index.error();
  }
  if (!index->is_object() || !index->contains("weight_map") ||
      !(*index)["weight_map"].is_object()) {
    return Error{Code::kCorrupt, where + ": weight_map is missing"};
  }
  std::set<std::string> names;
  for (const auto& [tensor, file] : (*index)["weight_map"].items()) {
    if (!file.is_string() || !is_plain_name(file.get<std::string>())) {
      return Error{
          Code::kCorrupt,
          where + ": weight_map of '" + tensor +
              "' is no plain file name: " + file.dump()};
    }
    names.insert(file.get<std::string>());
  }
  if (names.empty()) {
    return Error{Code::kCorrupt, where + ": weight_map is empty"};
  }
  return std::vector<std::string>(names.begin(), names.end());
}

Status read_rule(
    const std::string& where,
    const std::string& layer,
    const json& value,
    MlxQuantization& rule
) {
  const std::string what = where + ": quantization of '" + layer + "'";
  if (value.is_boolean()) {
    if (value.get<bool>()) {
      return Error{Code::kCorrupt, what + " is true without bits"};
    }
    return {};
  }
  JsonFields fields(value, what);
  rule.bits = fields.count("bits");
  rule.group = fields.count("group_size");
  rule.mode = fields.text("mode", "affine");
  if (!fields.status()) {
    return fields.status();
  }
  return check_mlx_quantization(rule, what);
}

}  // namespace

Result<std::vector<std::string>> weight_files(const std::string& directory) {
  const std::string index = directory + "/model.safetensors.index.json";
  const auto text = read_text_file(index);
  if (text) {
    return names_in_index(*text, "[model.load] " + index);
  }
  if (text.error().code != Code::kNotFound) {
    return text.error();
  }
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with("model") && name.ends_with(".safetensors")) {
      names.push_back(name);
    }
  }
  if (error) {
    return Error{
        Code::kIo, "[model.load] " + directory + ": " + error.message()};
  }
  if (names.empty()) {
    return Error{
        Code::kNotFound,
        "[model.load] " + directory + ": no model*.safetensors in it"};
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::map<std::string, MlxQuantization>> read_quantization(
    const json& config, const std::string& where
) {
  std::map<std::string, MlxQuantization> rules;
  JsonFields fields(config, where);
  const json* quantization = fields.find("quantization");
  if (quantization == nullptr) {
    if (const json* other = fields.find("quantization_config")) {
      const std::string method =
          other->is_object() ? other->value("quant_method", json()).dump()
                             : other->dump();
      return Error{
          Code::kUnsupported,
          where + ": quantization_config with quant_method " + method +
              "; supported: MLX's quantization"};
    }
    return rules;
  }
  MlxQuantization whole;
  if (Status status = read_rule(where, "the model", *quantization, whole);
      !status) {
    return status.error();
  }
  for (const auto& [key, value] : quantization->items()) {
    if (!value.is_object() && !value.is_boolean()) {
      continue;
    }
    if (Status status = read_rule(where, key, value, rules[key]); !status) {
      return status.error();
    }
  }
  return rules;
}

}  // namespace afterglow
