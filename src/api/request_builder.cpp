#include "api/request_builder.h"

#include <string_view>
#include <utility>

#include "api/history_state.h"
#include "api/model_state.h"
#include "api/raise.h"

namespace afterglow {
namespace {

/// As mlx_lm does: special tokens are added unless the text has them.
/// Source: mlx_lm 0.32.2, mlx_lm/generate.py, stream_generate
std::vector<Token> tokenize(const Model& model, const std::string& text) {
  const Tokenizer& tokenizer = model.state()->engine().tokenizer();
  const auto bos = tokenizer.bos();
  const bool has_them = bos && text.starts_with(tokenizer.piece(*bos));
  return model.encode(text, !has_them);
}

}  // namespace

GenerationRequest build_request(
    const Model& model,
    const Prompt& prompt,
    const std::optional<CacheHistory>& history
) {
  GenerationRequest request;
  if (history) request.history = history->state()->get();
  const bool goes_on =
      request.history && unknown_tokens(request.history->tokens) > 0;
  if (prompt.tokens()) {
    request.prompt = *prompt.tokens();
  } else if (goes_on) {
    request.prompt = model.encode(prompt.text(), false);
  } else {
    request.prompt = tokenize(model, prompt.text());
  }
  if (goes_on) {
    request.prompt.insert(
        request.prompt.begin(),
        request.history->tokens.begin(),
        request.history->tokens.end()
    );
  } else if (prompt.system_tokens() > 0) {
    if (prompt.system_tokens() > request.prompt.size()) {
      raise(
          {Code::kInvalidArgument,
           "[generate] a system prompt of " +
               std::to_string(prompt.system_tokens()) +
               " tokens is longer than the prompt, " +
               std::to_string(request.prompt.size())}
      );
    }
    request.boundaries = {{EntryType::kSystem, prompt.system_tokens()}};
  }
  return request;
}

}  // namespace afterglow
