#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/tokenizer.h"

struct tk_template;

namespace afterglow {

/// A compiled chat template (Jinja). The rendered text is, byte for byte,
/// what transformers' `apply_chat_template(tokenize=False)` gives; encode it
/// with add_special = false and parse_special = true.
/// Thread: const methods are safe from many threads at once.
class ChatTemplate {
 public:
  /// Texts of tokens that templates name as `bos_token` and so on; one that
  /// is not set is undefined in the template.
  struct SpecialTokens {
    std::optional<std::string> bos, eos, unk, pad;

    /// The texts of a tokenizer's tokens.
    static SpecialTokens of(const Tokenizer& tokenizer);
  };

  /// Errors: kInvalidArgument for a syntax error, with its line.
  static Result<ChatTemplate> create(
      std::string_view source, const SpecialTokens& special_tokens
  );

  /// The prompt of a conversation. `messages_json` is an array of objects,
  /// `tools_json` an array or empty, `kwargs_json` an object with further
  /// variables or empty; its members win over all others. Members keep their
  /// order. As transformers does, members of a message that are null are left
  /// out, and reasoning is given under both names templates read.
  /// Errors: kInvalidArgument with the template's own words when it refuses
  /// the conversation (`raise_exception`), with line and reason when it
  /// cannot be rendered, and for JSON of another shape.
  Result<std::string> render(
      std::string_view messages_json,
      std::string_view tools_json,
      bool add_generation_prompt,
      std::string_view kwargs_json
  ) const;

 private:
  explicit ChatTemplate(std::shared_ptr<const tk_template> handle)
      : handle_(std::move(handle)) {}

  std::shared_ptr<const tk_template> handle_;
};

/// The template in a tokenizer_config.json (`chat_template`: a text, or a
/// list of named ones of which `name` is taken), or nothing when it has none
/// of that name.
/// Errors: kCorrupt for wrong JSON.
Result<std::optional<std::string>> chat_template_in_config(
    std::string_view tokenizer_config_json, std::string_view name = "default"
);

}  // namespace afterglow
