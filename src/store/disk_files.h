#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "kv/block.h"
#include "store/disk_lock.h"

namespace afterglow {

// Block files of all models, seen without a model.

/// The block's file, relative to the root.
std::string block_path(const std::string& folder, const BlockId& id);

/// The blocks that have a file in a model's folder.
/// Errors: kNotFound without such a folder; those of the file system.
Result<std::set<BlockId>> stored_blocks(
    FileSystem& files, const std::string& folder
);

/// Names of the models' folders in v1.
Result<std::vector<std::string>> model_folders(FileSystem& files);

/// Bytes of all block files of all models.
Result<std::uint64_t> count_block_bytes(FileSystem& files);

/// Unlinks a block file and takes its bytes off the used ones. Returns its
/// bytes, none when it was gone already.
/// Requires: the epoch was raised in this transaction.
Result<std::optional<std::uint64_t>> remove_block_file(
    FileSystem& files, DiskTransaction& lock, const std::string& name
);

}  // namespace afterglow
