#include "afterglow/model.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "afterglow/cache_history.h"
#include "api/history_state.h"
#include "api/model_state.h"
#include "api/raise.h"
#include "hub/fetch_model.h"

namespace afterglow {
namespace {

std::string to_json(std::span<const Message> messages) {
  auto array = nlohmann::ordered_json::array();
  for (const Message& message : messages) {
    array.push_back({{"role", message.role}, {"content", message.content}});
  }
  try {
    return array.dump();
  } catch (const nlohmann::json::type_error&) {
    raise({Code::kInvalidArgument, "[model.chat] a message is not valid UTF-8"}
    );
  }
}

Prompt to_prompt(Result<PreparedPrompt> prepared) {
  PreparedPrompt prompt = require(std::move(prepared), "model.chat");
  std::size_t system = 0;
  for (const Boundary& boundary : prompt.boundaries) {
    if (boundary.type == EntryType::kSystem) system = boundary.length;
  }
  return Prompt(std::move(prompt.tokens), system);
}

}  // namespace

Prompt::Prompt(std::string text) : text_(std::move(text)) {}

Prompt::Prompt(std::vector<Token> tokens, std::size_t system_tokens)
    : tokens_(std::move(tokens)), system_tokens_(system_tokens) {}

Model::Model(std::shared_ptr<ModelState> state) : state_(std::move(state)) {}

const ModelInfo& Model::info() const {
  return state_->engine().info();
}

std::vector<Token> Model::encode(std::string_view text, bool add_special_tokens)
    const {
  return require(state_->engine().tokenizer().encode(
      text, add_special_tokens, /*parse_special=*/true
  ));
}

std::string Model::decode(
    std::span<const Token> tokens, bool skip_special_tokens
) const {
  const Tokenizer& tokenizer = state_->engine().tokenizer();
  for (Token token : tokens) {
    if (token < 0 ||
        static_cast<std::size_t>(token) >= tokenizer.vocab_size()) {
      raise(
          {Code::kInvalidArgument,
           "[model.decode] token " + std::to_string(token) +
               " is not in the vocabulary of " +
               std::to_string(tokenizer.vocab_size())}
      );
    }
  }
  return tokenizer.decode(tokens, skip_special_tokens);
}

Prompt Model::apply_chat_template(
    std::span<const Message> messages, std::string_view variables_json
) const {
  return apply_chat_template(to_json(messages), {}, variables_json);
}

Prompt Model::apply_chat_template(
    std::string_view messages_json,
    std::string_view tools_json,
    std::string_view variables_json
) const {
  return to_prompt(state_->engine().prepare_chat(
      {.messages = messages_json,
       .tools = tools_json,
       .variables = variables_json}
  ));
}

Prompt Model::open_chat_prompt(
    std::span<const Message> messages, std::string_view variables_json
) const {
  return to_prompt(
      state_->engine().prepare_open_chat(to_json(messages), variables_json)
  );
}

Prompt Model::rest_of_chat_prompt(
    std::span<const Message> messages, std::string_view variables_json
) const {
  return to_prompt(
      state_->engine().prepare_rest_of_chat(to_json(messages), variables_json)
  );
}

void Model::check(const CacheHistory& history) const {
  (void)require(state_->engine().adopt(history.state()->get()));
}

bool Model::close(std::chrono::nanoseconds write_time) {
  return state_->close(write_time);
}

Model load(
    const std::string& path_or_hub_id,
    const LoadOptions& options,
    const std::function<void(const DownloadProgress&)>& progress,
    std::stop_token cancel
) {
  FetchOptions fetch;
  fetch.progress = progress;
  fetch.cancel = std::move(cancel);
  EngineOptions all;
  static_cast<LoadOptions&>(all) = options;
  all.model = require(fetch_model(path_or_hub_id, fetch));
  return Model(std::make_shared<ModelState>(require(Engine::load(all))));
}

}  // namespace afterglow
