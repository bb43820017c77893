#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token.h"

struct tk_tokenizer;

namespace afterglow {

/// The tokenizer.ggml.* fields of a GGUF file, as they are.
/// Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
struct GgufVocab {
  std::string model;                // "gpt2" or "llama"
  std::string pre;                  // the pre-tokenizer's name; for "gpt2"
  std::vector<std::string> tokens;  // UTF-8
  std::vector<std::string> merges;  // "left right"; for "gpt2"
  std::vector<float> scores;        // one a token; for "llama"
  std::vector<std::int32_t> types;  // one a token; empty: all normal
  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = false;  // the file's default for "llama" is true
  std::optional<Token> bos, eos, unk, pad, eot;
};

/// Turns text into token ids and back; ids equal those of Hugging Face's
/// `tokenizers`. A copy shares the vocabulary.
/// Thread: const methods are safe from many threads at once.
class Tokenizer {
 public:
  /// Reads a tokenizer.json and the tokenizer_config.json beside it (may be
  /// empty), which names the bos, eos, unk and pad tokens.
  /// Errors: kCorrupt for wrong JSON or ids that contradict each other,
  /// kUnsupported for a decoder that cannot work token by token.
  static Result<Tokenizer> from_json(
      std::string_view tokenizer_json, std::string_view tokenizer_config_json
  );

  /// Errors: kUnsupported for an unknown model or pre-tokenizer name, kCorrupt
  /// for arrays that contradict each other.
  static Result<Tokenizer> from_gguf(const GgufVocab& vocab);

  /// The ids of a text. With `add_special` it begins and ends as the model
  /// expects (bos, eos). With `parse_special` the text of a special token,
  /// such as "<|im_end|>", becomes that token: right for rendered templates,
  /// wrong for text that users write. Tokens a vocabulary lists as added but
  /// not special (GGUF: user-defined) are found in any text. A text of more
  /// than `most` tokens may be read only in part: more than `most` come then,
  /// which count for nothing else.
  /// Errors: kInvalidArgument for text that is not valid UTF-8.
  Result<std::vector<Token>> encode(
      std::string_view utf8,
      bool add_special,
      bool parse_special,
      std::size_t most = std::numeric_limits<std::size_t>::max()
  ) const;

  /// The text of ids, always valid UTF-8: bytes that form no character become
  /// U+FFFD, one for each longest start of a character (HF replaces all of a
  /// run of byte tokens when one is bad). `skip_special` leaves special tokens
  /// out. An id outside the vocabulary stands for nothing.
  std::string decode(std::span<const Token> ids, bool skip_special) const;

  /// One more than the largest id.
  std::size_t vocab_size() const;

  std::optional<Token> bos() const;
  std::optional<Token> eos() const;
  std::optional<Token> unk() const;
  std::optional<Token> pad() const;
  /// The end of a turn, where it is not eos.
  std::optional<Token> eot() const;

  /// Whether a token is left out by `skip_special`.
  bool is_special(Token token) const;

  /// The bytes a token adds to a text; not always whole characters. Valid
  /// while any copy of this tokenizer lives.
  std::string_view piece(Token token) const;

  /// The id of the token written so in the vocabulary.
  std::optional<Token> token_to_id(std::string_view token) const;

 private:
  friend class Detokenizer;
  explicit Tokenizer(std::shared_ptr<const tk_tokenizer> handle)
      : handle_(std::move(handle)) {}

  std::shared_ptr<const tk_tokenizer> handle_;
};

}  // namespace afterglow
