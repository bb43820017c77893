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

}  // namespace afterglow
