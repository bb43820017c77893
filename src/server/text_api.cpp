#include "server/text_api.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "server/json_output.h"
#include "server/prompt_fields.h"

namespace afterglow {
namespace {

using json = nlohmann::ordered_json;

json piece_json(std::string_view piece) {
  if (is_utf8(piece)) return std::string(piece);
  json bytes = json::array();
  for (const char byte : piece) {
    bytes.push_back(static_cast<unsigned char>(byte));
  }
  return bytes;
}

json tokens_json(
    const std::vector<Token>& tokens,
    bool with_pieces,
    const Tokenizer& tokenizer
) {
  json list = json::array();
  for (const Token token : tokens) {
    if (with_pieces) {
      list.push_back(
          {{"id", token}, {"piece", piece_json(tokenizer.piece(token))}}
      );
    } else {
      list.push_back(token);
    }
  }
  return list;
}

/// The fault of the members, once all that are known have been read.
const std::optional<ApiError>& end_of(FieldReader& fields) {
  (void)fields.text("model");  // one is served
  fields.refuse_unknown();
  return fields.error();
}

}  // namespace

Output
tokenize(const Engine& engine, FieldReader& fields, const RequestDefaults&) {
  const auto content = fields.text("content");
  if (!content) fields.fail("content", "is missing");
  const bool add_special = fields.boolean("add_special").value_or(false);
  const bool parse_special = fields.boolean("parse_special").value_or(true);
  const bool with_pieces = fields.boolean("with_pieces").value_or(false);
  if (const auto& fault = end_of(fields)) return error_output(*fault);

  const Tokenizer& tokenizer = engine.tokenizer();
  const auto tokens = tokenizer.encode(*content, add_special, parse_special);
  if (!tokens.ok()) return fault_output(tokens.error(), "content");
  return json_output({{"tokens", tokens_json(*tokens, with_pieces, tokenizer)}}
  );
}

Output
detokenize(const Engine& engine, FieldReader& fields, const RequestDefaults&) {
  const json* list = fields.find("tokens");
  const auto tokens = list == nullptr ? std::nullopt : to_tokens(*list);
  const Tokenizer& tokenizer = engine.tokenizer();
  const auto known = [&](Token token) {
    return static_cast<std::size_t>(token) < tokenizer.vocab_size();
  };
  if (!tokens || !std::all_of(tokens->begin(), tokens->end(), known)) {
    fields.fail(
        "tokens",
        "must be a list of token ids below " +
            std::to_string(tokenizer.vocab_size())
    );
  }
  if (const auto& fault = end_of(fields)) return error_output(*fault);
  return json_output(
      {{"content", tokenizer.decode(*tokens, /*skip_special=*/false)}}
  );
}

Output apply_template(
    const Engine& engine, FieldReader& fields, const RequestDefaults& defaults
) {
  const ChatPrompt chat = read_chat_prompt(fields, defaults);
  if (const auto& fault = end_of(fields)) return error_output(*fault);
  const auto prompt = engine.render_chat(chat.input());
  if (!prompt.ok()) {
    return fault_output(prompt.error(), member_at_fault(chat, prompt.error()));
  }
  return json_output({{"prompt", *prompt}});
}

}  // namespace afterglow
