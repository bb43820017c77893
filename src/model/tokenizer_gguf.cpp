#include <algorithm>

#include "model/tokenizer_source.h"

namespace afterglow {
namespace {

constexpr char kPrefix[] = "tokenizer.ggml.";

std::optional<Token> read_token(
    GgufFields& fields, const std::string& name, std::size_t vocab_size
) {
  const auto value = fields.integer(kPrefix + name);
  if (!value || *value == -1 || *value == 0xffffffff) {
    return std::nullopt;  // absent, or the format's ways to say so
  }
  if (*value < 0 || *value >= static_cast<std::int64_t>(vocab_size)) {
    fields.fail(
        Code::kCorrupt,
        kPrefix + name,
        "= " + std::to_string(*value) + " is outside the vocabulary"
    );
    return std::nullopt;
  }
  return static_cast<Token>(*value);
}

void add_stop(TokenizerSource& source, std::optional<Token> token) {
  auto& stops = source.stop_tokens;
  if (token && std::find(stops.begin(), stops.end(), *token) == stops.end()) {
    stops.push_back(*token);
  }
}

void check_length(
    GgufFields& fields,
    const std::string& name,
    std::size_t length,
    std::size_t wanted
) {
  if (length != 0 && length != wanted) {
    fields.fail(
        Code::kCorrupt,
        kPrefix + name,
        "has " + std::to_string(length) + " elements, wants " +
            std::to_string(wanted)
    );
  }
}

}  // namespace

Result<TokenizerSource> tokenizer_from_gguf(
    const Gguf& gguf, std::size_t vocab_size, const std::string& where
) {
  GgufFields fields(gguf, where);
  const auto key = [](const char* name) { return kPrefix + std::string(name); };
  TokenizerSource source;
  source.is_gguf = true;
  source.gguf_model = fields.text(key("model"), "");
  source.gguf_pre = fields.text(key("pre"), "");
  source.tokens = fields.texts(key("tokens"));
  source.merges = fields.texts(key("merges"));
  source.scores = fields.floats(key("scores"));
  source.token_types = fields.integers(key("token_type"));
  check_length(fields, "tokens", source.tokens.size(), vocab_size);
  check_length(fields, "scores", source.scores.size(), source.tokens.size());
  check_length(
      fields, "token_type", source.token_types.size(), source.tokens.size()
  );
  source.add_bos = fields.boolean(key("add_bos_token"));
  source.add_eos = fields.boolean(key("add_eos_token"));
  source.add_space_prefix = fields.boolean(key("add_space_prefix"));
  source.bos = read_token(fields, "bos_token_id", vocab_size);
  source.eos = read_token(fields, "eos_token_id", vocab_size);
  source.eot = read_token(fields, "eot_token_id", vocab_size);
  source.unknown = read_token(fields, "unknown_token_id", vocab_size);
  source.padding = read_token(fields, "padding_token_id", vocab_size);
  source.chat_template = fields.text("tokenizer.chat_template", "");
  add_stop(source, source.eos);
  add_stop(source, source.eot);
  add_stop(source, read_token(fields, "eom_token_id", vocab_size));
  if (!fields.status()) {
    return fields.status().error();
  }
  return source;
}

}  // namespace afterglow
