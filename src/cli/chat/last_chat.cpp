#include "cli/chat/last_chat.h"

#include <span>

#include "store/temporary.h"

namespace afterglow {
namespace {

constexpr char kFolder[] = "chat";
constexpr char kFile[] = "chat/last.json";
constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;

Error at_file(const Error& error) {
  return {
      error.code,
      "[chat.continue] " + std::string(kFile) + ": " + error.message};
}

}  // namespace

Result<std::optional<LastChat::Found>> LastChat::read() {
  auto file = files_->open(kFile);
  if (!file.ok()) {
    if (file.error().code == Code::kNotFound) return std::optional<Found>();
    return file.error();
  }
  auto info = (*file)->info();
  if (!info.ok()) return info.error();
  if (info->bytes > kMostBytes) {
    return at_file({Code::kCorrupt, "it has more than 64 MiB"});
  }
  std::string text(static_cast<std::size_t>(info->bytes), '\0');
  auto count = (*file)->read_at(0, std::as_writable_bytes(std::span(text)));
  if (!count.ok()) return count.error();
  text.resize(*count);
  auto conversation = parse_conversation(text);
  if (!conversation.ok()) return at_file(conversation.error());
  return std::optional(Found{*std::move(conversation), info->mtime_ns});
}

Status LastChat::write(const Conversation& conversation) {
  if (Status made = files_->make_directory(kFolder); !made.ok()) return made;
  const Status written =
      replace_file(*files_, kFolder, kFile, to_json(conversation));
  return written.ok() ? files_->sync_directory("") : written;
}

}  // namespace afterglow
