#include "cli/stop_token.h"

#include <charconv>
#include <vector>

#include "api/raise.h"

namespace afterglow {

Token find_stop_token(
    const Model& model, const std::string& flag, const std::string& text
) {
  Token number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, failed] = std::from_chars(text.data(), end, number);
  if (failed == std::errc() && rest == end) {
    if (number >= 0 &&
        static_cast<std::size_t>(number) < model.info().vocab_size) {
      return number;
    }
    raise(
        {Code::kInvalidArgument,
         "[cli.tokens] " + flag + " " + text +
             ": the model's tokens are 0 to " +
             std::to_string(model.info().vocab_size - 1)}
    );
  }
  const std::vector<Token> tokens = model.encode(text, false);
  if (tokens.size() == 1) return tokens.front();
  raise(
      {Code::kInvalidArgument,
       "[cli.tokens] " + flag + " '" + text + "': the model writes it in " +
           std::to_string(tokens.size()) + " tokens, not in one"}
  );
}

}  // namespace afterglow
