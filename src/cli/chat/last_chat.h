#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/file_system.h"
#include "cli/chat/conversation.h"

namespace afterglow {

/// The conversation that was last kept in a prompt-cache directory, in
/// chat/last.json beside the cache's own files, mode 0600.
/// Thread: one thread at a time. Of two processes the last writer wins.
class LastChat {
 public:
  struct Found {
    Conversation conversation;
    std::int64_t written_at_ns = 0;  // Unix time
  };

  /// files: the directory, as a store has made it.
  explicit LastChat(std::unique_ptr<FileSystem> files)
      : files_(std::move(files)) {}

  /// None: there is none. Errors: the file system's; kCorrupt, kUnsupported.
  Result<std::optional<Found>> read();
  /// Replaces it when all is written and synced.
  Status write(const Conversation& conversation);

 private:
  std::unique_ptr<FileSystem> files_;
};

}  // namespace afterglow
