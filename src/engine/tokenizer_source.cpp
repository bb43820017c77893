#include "engine/tokenizer_source.h"

namespace afterglow {

Result<Tokenizer> make_tokenizer(const TokenizerSource& source) {
  if (!source.is_gguf) {
    return Tokenizer::from_json(
        source.tokenizer_json, source.tokenizer_config_json
    );
  }
  GgufVocab vocab;
  vocab.model = source.gguf_model;
  vocab.pre = source.gguf_pre;
  vocab.tokens = source.tokens;
  vocab.merges = source.merges;
  vocab.scores = source.scores;
  vocab.types = source.token_types;
  // The format's defaults: SentencePiece models begin with bos and a space.
  bool sentencepiece = source.gguf_model == "llama";
  vocab.add_bos = source.add_bos.value_or(sentencepiece);
  vocab.add_eos = source.add_eos.value_or(false);
  vocab.add_space_prefix = source.add_space_prefix.value_or(sentencepiece);
  vocab.bos = source.bos;
  vocab.eos = source.eos;
  vocab.unk = source.unknown;
  vocab.pad = source.padding;
  vocab.eot = source.eot;
  return Tokenizer::from_gguf(vocab);
}

Result<AnswerFormat> make_answer_format(
    const TokenizerSource& source,
    std::string_view chat_template,
    const Tokenizer& tokenizer
) {
  std::string named;
  if (!source.tokenizer_config_json.empty()) {
    Result<std::string> type =
        tool_parser_type_in_config(source.tokenizer_config_json);
    if (!type.ok()) {
      return type.error();
    }
    named = *std::move(type);
  }
  const auto has_token = [&](std::string_view text) {
    return tokenizer.token_to_id(text).has_value();
  };
  return infer_answer_format(chat_template, has_token, named);
}

}  // namespace afterglow
