// Any bytes as a request's body: refused with 400 in words that are JSON, or
// read into a value that reads alike when it is written, and into a request
// within its ranges.

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "server/openai_schema.h"

namespace afterglow {
namespace {

using json = nlohmann::ordered_json;

void check(bool good) {
  if (!good) std::abort();
}

void check_refusal(const ApiError& error) {
  check(error.status == 400 && !error.message.empty());
  const json told = json::parse(to_json(error));  // throws for bad UTF-8
  check(told["error"]["message"].is_string());
}

void check_request(const std::variant<CompletionRequest, ApiError>& parsed) {
  if (const auto* error = std::get_if<ApiError>(&parsed)) {
    check_refusal(*error);
    return;
  }
  const auto& request = std::get<CompletionRequest>(parsed);
  check(request.max_tokens >= 1 && request.choices() >= 1);
  check(!request.prompts.empty());
  check(request.top_logprobs <= 20);
  if (const ChatPrompt* chat = request.chat_prompt()) {
    check(json::parse(chat->messages_json).is_array());
    for (const std::string* text : {&chat->kwargs_json, &chat->tools_json}) {
      check(text->empty() || json::accept(*text));
    }
  }
}

}  // namespace
}  // namespace afterglow

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n) {
  using namespace afterglow;
  JsonLimits limits;
  limits.depth = 16;
  limits.values = 2000;
  const std::string_view text(reinterpret_cast<const char*>(data), n);
  const auto value = parse_json_body(text, limits);
  if (value.ok()) {
    check(json::accept(text));
    const std::string once = value->dump();
    const auto again = parse_json_body(once, limits);
    check(again.ok() && again->dump() == once);
  } else {
    check(!value.error().message.empty());
  }
  check_request(parse_chat_request(text, {}, limits));
  check_request(parse_text_request(text, {}, limits));
  return 0;
}
