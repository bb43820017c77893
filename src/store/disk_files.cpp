#include "store/disk_files.h"

#include <spdlog/spdlog.h>

#include "store/block_format.h"
#include "store/names.h"

namespace afterglow {

namespace {

constexpr std::size_t kFolderChars = 129;

}  // namespace

std::string block_path(const std::string& folder, const BlockId& id) {
  return names::blocks(folder) + "/" + block_file_name(id);
}

Result<std::set<BlockId>> stored_blocks(
    FileSystem& files, const std::string& folder
) {
  auto found = files.list(names::blocks(folder));
  if (!found) {
    return found.error();
  }
  std::set<BlockId> stored;
  for (const std::string& name : *found) {
    if (auto id = parse_block_file_name(name)) {
      stored.insert(*id);
    }
  }
  return stored;
}

Result<std::vector<std::string>> model_folders(FileSystem& files) {
  auto found = files.list(names::kVersion);
  if (found) {
    std::erase_if(*found, [](const std::string& name) {
      return name.size() != kFolderChars;
    });
  }
  return found;
}

Result<std::uint64_t> count_block_bytes(FileSystem& files) {
  auto folders = model_folders(files);
  if (!folders) {
    return folders.error();
  }
  std::uint64_t bytes = 0;
  for (const std::string& folder : *folders) {
    std::string directory = names::blocks(folder);
    auto blocks = files.list(directory);
    if (!blocks) {
      continue;  // a folder without blocks takes no space
    }
    for (const std::string& name : *blocks) {
      if (auto info = files.info(directory + "/" + name);
          info && info->is_regular) {
        bytes += info->bytes;
      }
    }
  }
  return bytes;
}

Result<std::optional<std::uint64_t>> remove_block_file(
    FileSystem& files, DiskTransaction& lock, const std::string& name
) {
  auto info = files.info(name);
  Status removed = info ? files.remove(name) : Status(info.error());
  if (!removed) {
    if (removed.error().code == Code::kNotFound) {
      return std::optional<std::uint64_t>();
    }
    return removed.error();
  }
  if (Status kept = lock.adjust_used(-static_cast<std::int64_t>(info->bytes));
      !kept) {
    // Too high a count stands until the next recount.
    spdlog::warn("[store.evict] {}", kept.error().message);
  }
  return std::optional(info->bytes);
}

}  // namespace afterglow
