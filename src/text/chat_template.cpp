#include "text/chat_template.h"

#include <utility>
#include <vector>

#include "text/textkit_util.h"

namespace afterglow {

using textkit::take;
using textkit::take_error;
using textkit::view;

ChatTemplate::SpecialTokens ChatTemplate::SpecialTokens::of(
    const Tokenizer& tokenizer
) {
  const auto text = [&](std::optional<Token> token) {
    return token ? std::optional<std::string>(tokenizer.piece(*token))
                 : std::nullopt;
  };
  return {
      .bos = text(tokenizer.bos()),
      .eos = text(tokenizer.eos()),
      .unk = text(tokenizer.unk()),
      .pad = text(tokenizer.pad())};
}

Result<ChatTemplate> ChatTemplate::create(
    std::string_view source, const SpecialTokens& special_tokens
) {
  const std::pair<const char*, const std::optional<std::string>*> all[] = {
      {"bos_token", &special_tokens.bos},
      {"eos_token", &special_tokens.eos},
      {"unk_token", &special_tokens.unk},
      {"pad_token", &special_tokens.pad},
  };
  std::vector<tk_variable> variables;
  for (const auto& [name, value] : all) {
    if (*value) {
      variables.push_back({view(name), view(**value)});
    }
  }
  tk_template* handle = nullptr;
  tk_buffer error{};
  const tk_code code = tk_template_new(
      view(source), variables.data(), variables.size(), &handle, &error
  );
  if (code != TK_OK) {
    return take_error("text.template", code, error);
  }
  return ChatTemplate(std::shared_ptr<const tk_template>(
      handle,
      [](const tk_template* chat_template) {
        tk_template_free(const_cast<tk_template*>(chat_template));
      }
  ));
}

Result<std::string> ChatTemplate::render(
    std::string_view messages_json,
    std::string_view tools_json,
    bool add_generation_prompt,
    std::string_view kwargs_json
) const {
  tk_buffer text{};
  tk_buffer error{};
  const tk_code code = tk_template_render(
      handle_.get(),
      view(messages_json),
      view(tools_json),
      add_generation_prompt,
      view(kwargs_json),
      &text,
      &error
  );
  if (code != TK_OK) {
    return take_error("text.render", code, error);
  }
  return take(text);
}

Result<std::optional<std::string>> chat_template_in_config(
    std::string_view tokenizer_config_json, std::string_view name
) {
  tk_buffer text{};
  bool found = false;
  tk_buffer error{};
  const tk_code code = tk_config_template(
      view(tokenizer_config_json), view(name), &found, &text, &error
  );
  if (code != TK_OK) {
    return take_error("text.template", code, error);
  }
  std::string source = take(text);
  return found ? std::optional<std::string>(std::move(source)) : std::nullopt;
}

}  // namespace afterglow
