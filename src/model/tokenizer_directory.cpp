#include <algorithm>

#include "model/json.h"
#include "model/text_file.h"
#include "model/tokenizer_source.h"

namespace afterglow {
namespace {

using nlohmann::json;

// A file's text; empty where there is none.
Result<std::string> optional_text(const std::string& path) {
  auto text = read_text_file(path);
  if (!text && text.error().code == Code::kNotFound) {
    return std::string();
  }
  return text;
}

// A file as JSON; an empty object where there is none.
Result<json> optional_json(const std::string& path) {
  const auto text = optional_text(path);
  if (!text) {
    return text.error();
  }
  return text->empty() ? json::object()
                       : parse_json(*text, "[model.load] " + path);
}

// The template itself, or of several named ones the one named "default".
Result<std::string> template_in(const json& config, const std::string& where) {
  const auto found = config.find("chat_template");
  if (found == config.end() || found->is_null()) {
    return std::string();
  }
  if (found->is_string()) {
    return found->get<std::string>();
  }
  if (found->is_array()) {
    for (const json& entry : *found) {
      if (entry.is_object() && entry.value("name", json()) == "default" &&
          entry.contains("template") && entry["template"].is_string()) {
        return entry["template"].get<std::string>();
      }
    }
  }
  return Error{
      Code::kCorrupt,
      where +
          ": chat_template is neither a string nor a list of templates "
          "with one named 'default'"};
}

// eos_token_id: a token or a list of them.
Result<std::vector<Token>> stops_in(
    const json& config, std::size_t vocab_size, const std::string& where
) {
  std::vector<Token> stops;
  const auto found = config.find("eos_token_id");
  if (found == config.end() || found->is_null()) {
    return stops;
  }
  const json list = found->is_array() ? *found : json::array({*found});
  for (const json& value : list) {
    if (!value.is_number_unsigned() ||
        value.get<std::uint64_t>() >= vocab_size) {
      return Error{
          Code::kCorrupt,
          where + ": eos_token_id " + value.dump() +
              " is no token of the vocabulary"};
    }
    const auto token = value.get<Token>();
    if (std::find(stops.begin(), stops.end(), token) == stops.end()) {
      stops.push_back(token);
    }
  }
  return stops;
}

Status read_template(const std::string& directory, TokenizerSource& source) {
  const auto file = optional_text(directory + "/chat_template.jinja");
  if (!file) {
    return file.error();
  }
  source.chat_template = *file;
  if (!file->empty() || source.tokenizer_config_json.empty()) {
    return {};
  }
  const std::string where =
      "[model.load] " + directory + "/tokenizer_config.json";
  const auto config = parse_json(source.tokenizer_config_json, where);
  if (!config) {
    return config.error();
  }
  if (!config->is_object()) {
    return Error{Code::kCorrupt, where + ": not a JSON object"};
  }
  auto text = template_in(*config, where);
  if (!text) {
    return text.error();
  }
  source.chat_template = std::move(*text);
  return {};
}

// generation_config.json goes before config.json, as in mlx_lm.
Status read_stops(
    const std::string& directory,
    std::size_t vocab_size,
    TokenizerSource& source
) {
  for (const char* name : {"/generation_config.json", "/config.json"}) {
    const auto config = optional_json(directory + name);
    if (!config) {
      return config.error();
    }
    auto stops =
        stops_in(*config, vocab_size, "[model.load] " + directory + name);
    if (!stops) {
      return stops.error();
    }
    if (!stops->empty()) {
      source.stop_tokens = std::move(*stops);
      return {};
    }
  }
  return {};
}

}  // namespace

Result<TokenizerSource> tokenizer_from_directory(
    const std::string& directory, std::size_t vocab_size
) {
  TokenizerSource source;
  auto tokenizer = optional_text(directory + "/tokenizer.json");
  if (!tokenizer) {
    return tokenizer.error();
  }
  source.tokenizer_json = std::move(*tokenizer);
  auto config = optional_text(directory + "/tokenizer_config.json");
  if (!config) {
    return config.error();
  }
  source.tokenizer_config_json = std::move(*config);
  if (Status status = read_template(directory, source); !status) {
    return status.error();
  }
  if (Status status = read_stops(directory, vocab_size, source); !status) {
    return status.error();
  }
  return source;
}

}  // namespace afterglow
