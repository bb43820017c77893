#pragma once

#include <string>

#include "afterglow/cache_history.h"
#include "cli/chat/conversation.h"

namespace afterglow {

/// A conversation with its KV.
struct SavedChat {
  Conversation conversation;
  CacheHistory history;
};

/// Writes it to one file of save_cache, whose metadata have the conversation.
/// Throws: as save_cache.
void save_chat(const std::string& file, const SavedChat& chat);

/// Throws: as load_cache; kInvalidArgument for a prompt-cache file without a
/// conversation, kCorrupt and kUnsupported for one whose conversation cannot
/// be read.
SavedChat load_chat(const std::string& file);

}  // namespace afterglow
