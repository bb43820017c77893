#include "cli/chat/saved_chat.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "api/raise.h"

namespace afterglow {
namespace {

constexpr char kField[] = "conversation";

[[noreturn]] void refuse(
    Code code, const std::string& file, const std::string& why
) {
  raise({code, "[chat.load] " + file + ": " + why});
}

std::pair<CacheHistory, Metadata> load_file(const std::string& file) {
  try {
    return load_cache(file);
  } catch (const Exception& error) {
    if (error.code() != Code::kCorrupt) throw;
    refuse(
        error.code(),
        file,
        std::string("not a chat that /save wrote, or damaged: ") + error.what()
    );
  }
}

}  // namespace

void save_chat(const std::string& file, const SavedChat& chat) {
  save_cache(
      file,
      chat.history,
      {{"model_id", chat.conversation.model},
       {kField, to_json(chat.conversation)}}
  );
}

SavedChat load_chat(const std::string& file) {
  auto [history, metadata] = load_file(file);
  const auto found = metadata.find(kField);
  if (found == metadata.end()) {
    refuse(
        Code::kInvalidArgument,
        file,
        "a prompt cache, but not a chat that /save wrote"
    );
  }
  auto conversation = parse_conversation(found->second);
  if (!conversation.ok()) {
    refuse(
        conversation.error().code,
        file,
        "its conversation cannot be read: " + conversation.error().message
    );
  }
  const std::vector<Token> tokens = history.tokens();
  if (std::ranges::count(tokens, kUnknownToken) > 0) {
    refuse(
        Code::kInvalidArgument,
        file,
        "it does not say which tokens it holds; another program wrote it"
    );
  }
  return {*std::move(conversation), std::move(history)};
}

}  // namespace afterglow
