#include "text/tokenizer.h"

#include "text/textkit_util.h"

namespace afterglow {
namespace {

using textkit::take;
using textkit::take_error;
using textkit::view;

std::optional<Token> optional_id(std::int32_t id) {
  return id < 0 ? std::nullopt : std::optional<Token>(id);
}

std::vector<tk_view> views(const std::vector<std::string>& texts) {
  std::vector<tk_view> result;
  result.reserve(texts.size());
  for (const auto& text : texts) {
    result.push_back(view(text));
  }
  return result;
}

std::shared_ptr<const tk_tokenizer> owned(tk_tokenizer* handle) {
  return {handle, [](const tk_tokenizer* tokenizer) {
            tk_tokenizer_free(const_cast<tk_tokenizer*>(tokenizer));
          }};
}

}  // namespace

Result<Tokenizer> Tokenizer::from_json(
    std::string_view tokenizer_json, std::string_view tokenizer_config_json
) {
  tk_tokenizer* handle = nullptr;
  tk_buffer error{};
  const tk_code code = tk_tokenizer_from_json(
      view(tokenizer_json), view(tokenizer_config_json), &handle, &error
  );
  if (code != TK_OK) {
    return take_error("text.tokenizer", code, error);
  }
  return Tokenizer(owned(handle));
}

Result<Tokenizer> Tokenizer::from_gguf(const GgufVocab& vocab) {
  const auto tokens = views(vocab.tokens);
  const auto merges = views(vocab.merges);
  const tk_gguf_vocab raw{
      .tokens = tokens.data(),
      .token_count = tokens.size(),
      .merges = merges.data(),
      .merge_count = merges.size(),
      .scores = vocab.scores.data(),
      .score_count = vocab.scores.size(),
      .types = vocab.types.data(),
      .type_count = vocab.types.size(),
      .model = view(vocab.model),
      .pre = view(vocab.pre),
      .add_space_prefix = vocab.add_space_prefix,
      .special =
          {.bos = vocab.bos.value_or(-1),
           .eos = vocab.eos.value_or(-1),
           .unk = vocab.unk.value_or(-1),
           .pad = vocab.pad.value_or(-1),
           .eot = vocab.eot.value_or(-1),
           .add_bos = vocab.add_bos,
           .add_eos = vocab.add_eos},
  };
  tk_tokenizer* handle = nullptr;
  tk_buffer error{};
  const tk_code code = tk_tokenizer_from_gguf(&raw, &handle, &error);
  if (code != TK_OK) {
    return take_error("text.tokenizer", code, error);
  }
  return Tokenizer(owned(handle));
}

Result<std::vector<Token>> Tokenizer::encode(
    std::string_view utf8,
    bool add_special,
    bool parse_special,
    std::size_t most
) const {
  tk_ids ids{};
  tk_buffer error{};
  const tk_code code = tk_tokenizer_encode(
      handle_.get(), view(utf8), add_special, parse_special, most, &ids, &error
  );
  if (code != TK_OK) {
    return take_error("text.encode", code, error);
  }
  std::vector<Token> result(ids.data, ids.data + ids.size);
  tk_ids_free(ids);
  return result;
}

std::string Tokenizer::decode(std::span<const Token> ids, bool skip_special)
    const {
  tk_buffer text{};
  tk_buffer error{};
  const tk_code code = tk_tokenizer_decode(
      handle_.get(), ids.data(), ids.size(), skip_special, &text, &error
  );
  if (code != TK_OK) {
    const Error failed = take_error("text.decode", code, error);
    CHECK(false, failed.message);
  }
  return take(text);
}

std::size_t Tokenizer::vocab_size() const {
  return tk_tokenizer_vocab_size(handle_.get());
}

std::optional<Token> Tokenizer::bos() const {
  return optional_id(tk_tokenizer_special(handle_.get()).bos);
}

std::optional<Token> Tokenizer::eos() const {
  return optional_id(tk_tokenizer_special(handle_.get()).eos);
}

std::optional<Token> Tokenizer::unk() const {
  return optional_id(tk_tokenizer_special(handle_.get()).unk);
}

std::optional<Token> Tokenizer::pad() const {
  return optional_id(tk_tokenizer_special(handle_.get()).pad);
}

std::optional<Token> Tokenizer::eot() const {
  return optional_id(tk_tokenizer_special(handle_.get()).eot);
}

bool Tokenizer::is_special(Token token) const {
  return tk_tokenizer_is_special(handle_.get(), token);
}

std::string_view Tokenizer::piece(Token token) const {
  return view(tk_tokenizer_piece(handle_.get(), token));
}

std::optional<Token> Tokenizer::token_to_id(std::string_view token) const {
  return optional_id(tk_tokenizer_token_to_id(handle_.get(), view(token)));
}

}  // namespace afterglow
