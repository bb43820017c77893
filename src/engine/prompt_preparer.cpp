#include "engine/prompt_preparer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace afterglow {
namespace {

using Json = nlohmann::ordered_json;

Result<Json> parse_messages(std::string_view text) {
  Json messages = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!messages.is_array() || messages.empty()) {
    return Error{
        Code::kInvalidArgument, "messages must be a list that is not empty"};
  }
  for (const Json& message : messages) {
    if (!message.is_object() || !message.contains("role") ||
        !message["role"].is_string()) {
      return Error{
          Code::kInvalidArgument, "each message must be an object with a role"};
    }
  }
  return messages;
}

std::size_t leading_system_messages(const Json& messages) {
  std::size_t count = 0;
  while (count < messages.size() && messages[count]["role"] == "system") {
    ++count;
  }
  return count;
}

bool has_text(const Json& message) {
  auto content = message.find("content");
  return content != message.end() && content->is_string();
}

constexpr std::string_view kSpaces = " \t\n\v\f\r";

std::string_view strip(std::string_view text) {
  std::size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

// What models without a template get. Source: mlx_lm 0.32.2,
// mlx_lm/server.py, convert_chat
std::string join_messages(const Json& messages, const Json& mapping) {
  auto text_of = [&](const std::string& role) {
    auto found = mapping.find(role);
    return found == mapping.end() ? std::string() : found->get<std::string>();
  };
  std::string text;
  for (const Json& message : messages) {
    text += text_of(message["role"]);
    if (has_text(message)) {
      text += message["content"].get_ref<const std::string&>();
    }
    text += text_of("stop");
  }
  text += text_of("assistant");
  text.erase(text.find_last_not_of(kSpaces) + 1);
  return text;
}

// Its default, or the request's. Requires: an object of strings, or nothing.
Json role_mapping(std::string_view given) {
  if (given.empty()) {
    return {
        {"system", "ASSISTANT's RULE: "},
        {"user", "USER: "},
        {"assistant", "ASSISTANT: "},
        {"stop", "\n"}};
  }
  return Json::parse(given, nullptr, /*allow_exceptions=*/false);
}

}  // namespace

PromptPreparer::PromptPreparer(
    const Tokenizer& tokenizer,
    const std::optional<ChatTemplate>& chat,
    const AnswerFormat& format,
    std::size_t most_tokens
)
    : tokenizer_(tokenizer),
      chat_(chat),
      format_(format),
      most_tokens_(most_tokens) {}

bool PromptPreparer::leaves_tools_out(
    const ChatInput& chat, const std::string& rendered
) const {
  if (!chat_) {
    return true;
  }
  Result<std::string> without =
      chat_->render(chat.messages, {}, true, chat.variables);
  return without.ok() && *without == rendered;
}

Result<std::string> PromptPreparer::render(const ChatInput& chat) const {
  Result<Json> messages = parse_messages(chat.messages);
  return messages.ok() ? render(chat, *messages) : messages.error();
}

Result<std::string> PromptPreparer::render(
    const ChatInput& chat, const nlohmann::ordered_json& messages
) const {
  if (chat_ && !chat.role_mapping.empty()) {
    return Error{
        Code::kUnsupported,
        "role_mapping is for models without a chat template; this one has one"};
  }
  Result<std::string> rendered =
      chat_ ? chat_->render(chat.messages, chat.tools, true, chat.variables)
            : join_messages(messages, role_mapping(chat.role_mapping));
  if (rendered.ok() && !chat.tools.empty() && format_.tool_calls == nullptr &&
      leaves_tools_out(chat, *rendered)) {
    return Error{
        Code::kUnsupported,
        "this model's chat template says nothing of tools, so it cannot be "
        "given any"};
  }
  return rendered;
}

// Messages may hold the marks of reasoning as well; what counts is how the
// template begins the answer: what it says only when asked to begin one. That
// is the prompt's end, and where the whole leaves no reasoning open, no end of
// it does.
AnswerPart PromptPreparer::begins(
    const ChatInput& chat, std::string_view rendered
) const {
  const AnswerPart whole = format_.begins_after(rendered);
  if (whole == format_.begins_after({})) {
    return whole;
  }
  Result<std::string> messages =
      chat_->render(chat.messages, chat.tools, false, chat.variables);
  if (!messages.ok()) {
    return whole;
  }
  auto end = std::mismatch(
      messages->begin(), messages->end(), rendered.begin(), rendered.end()
  );
  return format_.begins_after({end.second, rendered.end()});
}

Result<PreparedPrompt> PromptPreparer::chat(const ChatInput& chat) const {
  Result<Json> messages = parse_messages(chat.messages);
  if (!messages.ok()) {
    return messages.error();
  }
  Result<std::string> rendered = render(chat, *messages);
  if (!rendered.ok()) {
    return rendered.error();
  }
  if (!chat_) {
    return text(*rendered);
  }
  Result<PreparedPrompt> prepared = encode_rendered(*rendered);
  if (prepared.ok()) {
    prepared->begins = begins(chat, *rendered);
    mark_system_prompt(*messages, chat.tools, chat.variables, *prepared);
  }
  return prepared;
}

// The system prompt ends where the same messages with another user message
// begin to differ. A template that refuses that gives no boundary.
void PromptPreparer::mark_system_prompt(
    const nlohmann::ordered_json& messages,
    std::string_view tools_json,
    std::string_view kwargs_json,
    PreparedPrompt& prepared
) const {
  std::size_t system = leading_system_messages(messages);
  if (system == 0 || system == messages.size()) {
    return;
  }
  Json probe(
      messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(system)
  );
  probe.push_back({{"role", "user"}, {"content", ""}});
  Result<std::string> rendered =
      chat_->render(probe.dump(), tools_json, false, kwargs_json);
  if (!rendered.ok()) {
    return;
  }
  Result<PreparedPrompt> other = encode_rendered(*rendered);
  if (!other.ok()) {
    return;
  }
  const std::size_t length = shared_prefix(other->tokens, prepared.tokens);
  if (length > 0 && length < prepared.tokens.size()) {
    prepared.boundaries.push_back({EntryType::kSystem, length});
  }
}

// Source: transformers, utils/chat_template_utils.py, render_jinja_template
Result<std::string> PromptPreparer::render_open(
    nlohmann::ordered_json messages, std::string_view kwargs_json
) const {
  static constexpr std::string_view kTag = "CONTINUE_FINAL_MESSAGE_TAG ";
  Json& content = messages.back()["content"];
  const std::string last = content.get<std::string>();
  content = last + std::string(kTag);
  Result<std::string> rendered =
      chat_->render(messages.dump(), "", false, kwargs_json);
  if (!rendered.ok()) {
    return rendered.error();
  }
  std::size_t tag = rendered->rfind(strip(kTag));
  if (tag == std::string::npos ||
      rendered->find(strip(last)) == std::string::npos) {
    return Error{
        Code::kInvalidArgument,
        "the chat template leaves out parts of the last message, so it cannot "
        "be continued"};
  }
  bool keeps_spaces = rendered->compare(tag, kTag.size(), kTag) == 0;
  rendered->resize(tag);
  if (!keeps_spaces) {
    rendered->erase(rendered->find_last_not_of(kSpaces) + 1);
  }
  return rendered;
}

Result<PreparedPrompt> PromptPreparer::open_chat(
    std::string_view messages_json, std::string_view kwargs_json
) const {
  Result<Json> messages = parse_messages(messages_json);
  if (!messages.ok()) {
    return messages.error();
  }
  const Json& last = messages->back();
  if (!has_text(last)) {
    return Error{
        Code::kInvalidArgument,
        "the last message has no text that could be continued"};
  }
  if (!chat_) {
    return messages->size() == 1
               ? text(last["content"].get_ref<const std::string&>())
               : Result<PreparedPrompt>(Error{
                     Code::kUnsupported,
                     "the model has no chat template for several messages"});
  }
  Result<std::string> rendered = render_open(*messages, kwargs_json);
  if (!rendered.ok()) {
    return rendered.error();
  }
  Result<PreparedPrompt> prepared = encode_rendered(*rendered);
  if (prepared.ok()) {
    mark_system_prompt(*messages, {}, kwargs_json, *prepared);
  }
  return prepared;
}

// Source: mlx_lm 0.32.2, mlx_lm/generate.py, main
Result<PreparedPrompt> PromptPreparer::rest_of_chat(
    std::string_view messages_json, std::string_view kwargs_json
) const {
  Result<Json> messages = parse_messages(messages_json);
  if (!messages.ok()) {
    return messages.error();
  }
  const bool begun =
      messages->size() > 1 && messages->back()["role"] == "assistant";
  Json& asked = (*messages)[messages->size() - (begun ? 2 : 1)];
  if (!has_text(asked) || !has_text(messages->back())) {
    return Error{Code::kInvalidArgument, "the last message has no text"};
  }
  if (!chat_) {
    return begun
               ? Result<PreparedPrompt>(Error{
                     Code::kUnsupported,
                     "the model has no chat template for an answer's "
                     "beginning"})
               : encode_rendered(asked["content"].get_ref<const std::string&>()
                 );
  }
  std::string mark = "<query>";
  const std::string all = messages->dump();
  while (all.find(mark) != std::string::npos) {
    mark.insert(1, 1, 'q');
  }
  auto render = [&] {
    return begun ? render_open(*messages, kwargs_json)
                 : chat_->render(messages->dump(), "", true, kwargs_json);
  };
  Result<std::string> rendered = render();
  asked["content"] = mark;
  Result<std::string> marked = render();
  if (!rendered.ok() || !marked.ok()) {
    return rendered.ok() ? marked.error() : rendered.error();
  }
  std::size_t start = marked->find(mark);
  if (start == std::string::npos || start > rendered->size()) {
    return Error{
        Code::kInvalidArgument,
        "the chat template leaves out the last message"};
  }
  return encode_rendered(std::string_view(*rendered).substr(start));
}

Result<PreparedPrompt> PromptPreparer::encode_rendered(std::string_view text
) const {
  Result<std::vector<Token>> tokens = tokenizer_.encode(
      text, /*add_special=*/false, /*parse_special=*/true, most_tokens_
  );
  if (!tokens.ok()) {
    return tokens.error();
  }
  return PreparedPrompt{.tokens = std::move(*tokens), .boundaries = {}};
}

Result<PreparedPrompt> PromptPreparer::text(std::string_view text) const {
  Result<std::vector<Token>> tokens = tokenizer_.encode(
      text, /*add_special=*/true, /*parse_special=*/true, most_tokens_
  );
  if (!tokens.ok()) {
    return tokens.error();
  }
  return PreparedPrompt{.tokens = std::move(*tokens), .boundaries = {}};
}

}  // namespace afterglow
