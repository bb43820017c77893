#pragma once

#include "store/context.h"
#include "store/disk_space.h"

namespace afterglow {

/// Removes corrupt block files. Thread: safe from any thread.
class DamageControl {
 public:
  DamageControl(StoreContext& context, DiskSpace& space)
      : context_(context), space_(space) {}

  /// A complete read of the block was corrupt twice, as `error` says. Looks
  /// again under the lock, since another process may have replaced the file;
  /// if it still is corrupt, unlinks, logs and counts it.
  void confirm(const BlockId& id, const Error& error);

 private:
  /// kCorrupt when a complete read says so; other errors keep the file.
  Status verify(const BlockId& id);

  StoreContext& context_;
  DiskSpace& space_;
};

/// Reads and verifies one block's file, once more when it looks corrupt.
/// Errors: as read_block_head and read_block_kv.
Result<BlockHead> read_block_twice(
    const StoreContext& context, const BlockId& id, Page& page
);

}  // namespace afterglow
