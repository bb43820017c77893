#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "store/disk_lock.h"

namespace afterglow {

// Block files of all models, seen without a model.

/// Names of the models' folders in v1.
Result<std::vector<std::string>> model_folders(FileSystem& files);

/// Bytes of all block files of all models.
Result<std::uint64_t> count_block_bytes(FileSystem& files);

/// Unlinks a block file and takes its bytes off the used ones. False when it
/// was gone already.
/// Requires: the epoch was raised in this transaction.
Result<bool> remove_block_file(
    FileSystem& files, DiskTransaction& lock, const std::string& name
);

}  // namespace afterglow
