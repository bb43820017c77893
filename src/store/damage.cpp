#include "store/damage.h"

#include <spdlog/spdlog.h>

#include <chrono>

#include "store/block_io.h"

namespace afterglow {

namespace {

/// I/O threads have requests to serve, so they do not wait for long.
constexpr std::chrono::seconds kLockPatience{5};

Result<BlockHead> read_block(
    const StoreContext& context, const BlockId& id, Page& page
) {
  auto file = context.files->open(context.file_of(id));
  if (!file) {
    return file.error();
  }
  auto head = read_block_head(context.key, id, **file);
  if (!head) {
    return head;
  }
  if (Status kv = read_block_kv(context.key, *head, **file, page); !kv) {
    return kv.error();
  }
  return head;
}

}  // namespace

Result<BlockHead> read_block_twice(
    const StoreContext& context, const BlockId& id, Page& page
) {
  return read_twice([&] { return read_block(context, id, page); });
}

Status DamageControl::verify(const BlockId& id) {
  std::shared_ptr<Page> page = context_.pool.make();
  auto head = read_block(context_, id, *page);
  return head ? Status() : Status(head.error());
}

void DamageControl::confirm(const BlockId& id, const Error& error) {
  auto end = std::chrono::steady_clock::now() + kLockPatience;
  auto lock = DiskTransaction::begin(*context_.files, [&] {
    return context_.stopping || std::chrono::steady_clock::now() > end;
  });
  if (!lock) {
    return;  // the file stays, and is found corrupt again
  }
  Status verified = verify(id);
  if (verified || verified.error().code != Code::kCorrupt) {
    return;
  }
  auto removed = space_.remove(*lock, {&id, 1}, DiskSpace::Reason::kUnusable);
  if (!removed || removed->files == 0) {
    return;
  }
  context_.count([](StoreStats& stats) { ++stats.corrupt_blocks; });
  spdlog::warn(
      "[store.read] block {} was corrupt and is removed; its up to {} tokens "
      "and those after them will be computed again: {}",
      id.hex(),
      kPageTokens,
      error.message
  );
}

}  // namespace afterglow
