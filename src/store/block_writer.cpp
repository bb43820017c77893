#include "store/block_writer.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "store/block_io.h"
#include "store/clock.h"
#include "store/directory.h"

namespace afterglow {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kBatchBytes = std::uint64_t{64} << 20;
/// Batches are small against the budget, so that making room for one does
/// not empty the disk.
constexpr std::uint64_t kBatchShare = 4;
constexpr std::uint64_t kFreeFloor = std::uint64_t{1} << 30;
constexpr std::uint64_t kFreeShare = 20;  // 5 %
constexpr int kMaxRequeues = 3;
constexpr std::chrono::minutes kRequeueWindow{1};

std::int64_t unix_ns_of(Clock::time_point time) {
  using std::chrono::nanoseconds;
  return unix_now_ns() - nanoseconds(Clock::now() - time).count();
}

bool is_out_of_order(Code code) {
  return code == Code::kNoSpace || code == Code::kPermission ||
         code == Code::kNotFound || code == Code::kUnavailable;
}

}  // namespace

void BlockWriter::publish(std::span<const PromptCache::Dirty> blocks) {
  std::uint64_t bound = kBatchBytes;
  if (context_.options.disk_bytes != 0) {
    bound = std::min(bound, context_.options.disk_bytes / kBatchShare);
  }
  std::uint64_t each = context_.key.layout.page_bytes();
  std::size_t count = static_cast<std::size_t>(
      std::max<std::uint64_t>(1, bound / std::max<std::uint64_t>(1, each))
  );
  for (std::size_t at = 0; at < blocks.size(); at += count) {
    if (context_.stopping) {
      // Still dirty: a store opened later on this cache writes them.
      for (const auto& dirty : blocks.subspan(at)) {
        context_.cache.requeue(dirty.block->id);
      }
      return;
    }
    publish_batch(blocks.subspan(at, std::min(count, blocks.size() - at)));
  }
}

void BlockWriter::publish_batch(std::span<const PromptCache::Dirty> blocks) {
  std::vector<Item> items(blocks.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i].dirty = &blocks[i];
  }
  Status usable = check_free_space(
      blocks.size() * std::uint64_t{context_.key.layout.page_bytes()}
  );
  if (usable && !has_directories_) {
    usable = make_directories(context_);
    has_directories_ = usable.ok();
  }
  if (!usable) {
    context_.writing_failed(usable.error());
  }
  if (usable) {
    usable = reserve(items);
  }
  bool goes_on = usable.ok();
  for (Item& item : items) {
    if (item.fate == Fate::kPending && goes_on) {
      goes_on = prepare(item);
    } else {
      item.fate = Fate::kFailed;
    }
  }
  bool any = std::any_of(items.begin(), items.end(), [](const Item& item) {
    return item.fate == Fate::kPending;
  });
  if (any) {
    auto lock = DiskTransaction::begin(*context_.files, [&] {
      return context_.stopping.load();
    });
    if (lock) {
      link_all(*lock, items);
    } else {
      for (Item& item : items) {
        bool again = lock.error().code == Code::kCancelled &&
                     item.fate == Fate::kPending &&
                     context_.cache.requeue(item.block().id);
        if (again) {
          item.fate = Fate::kRequeued;
        }
        fail(item, lock.error());
      }
    }
    // Their names go while the lock is held, so that none is left to see.
    for (Item& item : items) {
      item.temporary.reset();
    }
  }
  settle(items);
}

Status BlockWriter::reserve(std::vector<Item>& items) {
  written_ = 0;
  reserved_ = 0;
  std::uint64_t bound = context_.options.daily_write_bytes;
  if (bound == 0) {
    return {};
  }
  auto lock = DiskTransaction::begin(*context_.files, [&] {
    return context_.stopping.load();
  });
  if (!lock) {
    return lock.error();
  }
  std::uint64_t written = lock->written_today();
  std::uint64_t room = bound - std::min(bound, written);
  std::uint64_t capped = 0;
  for (Item& item : items) {
    std::uint64_t bytes = block_file_bytes(context_.key, item.block());
    if (capped > 0 || bytes > room - reserved_) {
      item.fate = Fate::kFailed;  // and what follows: mostly its children
      ++capped;
    } else {
      reserved_ += bytes;
    }
  }
  if (capped > 0 && !is_capped_) {
    spdlog::warn(
        "[store.write] {} MiB were written today, as many as allowed; new "
        "blocks stay in memory only until tomorrow (UTC)",
        written >> 20
    );
  }
  is_capped_ = capped > 0;
  context_.count([&](StoreStats& stats) { stats.capped_blocks += capped; });
  return lock->adjust_written(static_cast<std::int64_t>(reserved_));
}

Status BlockWriter::settle_allowance(DiskTransaction& lock) {
  auto change = static_cast<std::int64_t>(written_) -
                static_cast<std::int64_t>(reserved_);
  reserved_ = written_;
  return change == 0 ? Status() : lock.adjust_written(change);
}

Status BlockWriter::check_free_space(std::uint64_t bytes) {
  auto space = context_.files->free_space();
  if (!space) {
    return space.error();
  }
  std::uint64_t floor = std::max(kFreeFloor, space->total_bytes / kFreeShare);
  if (space->free_bytes < floor + bytes) {
    return Error{
        Code::kNoSpace,
        "[store.write] " + std::to_string(space->free_bytes >> 20) +
            " MiB free on the cache's disk; writing stops below " +
            std::to_string(floor >> 20) + " MiB: free some space"};
  }
  return {};
}

bool BlockWriter::prepare(Item& item) {
  const BlockId& id = item.block().id;
  if (auto file = context_.files->open(context_.file_of(id))) {
    // Equal ids mean equal content, so an intact head is proof enough.
    if (auto head = read_block_head(context_.key, id, **file)) {
      item.bytes = head->file_bytes;
      return true;
    }
  }
  Status written = write_temporary(item);
  if (!written) {
    fail(item, written.error());
    return !is_out_of_order(written.error().code);
  }
  return true;
}

Status BlockWriter::write_temporary(Item& item) {
  Status first = write_once(item);
  if (first || context_.stopping) {
    return first;
  }
  if (first.error().code == Code::kNotFound) {
    // Somebody removed the directory under us.
    if (Status made = make_directories(context_); !made) {
      has_directories_ = false;
      return made;
    }
  } else if (first.error().code != Code::kIo) {
    return first;
  }
  // A failed sync is final for its file: once more under another name.
  return write_once(item);
}

Status BlockWriter::write_once(Item& item) {
  item.temporary.reset();
  auto temporary = Temporary::create(*context_.files);
  if (!temporary) {
    return temporary.error();
  }
  BlockImage image =
      make_block_image(context_.key, item.block(), *item.dirty->page);
  File& file = temporary->file();
  written_ += image.bytes();
  if (Status head = file.write_at(0, image.head); !head) {
    return head;
  }
  if (Status kv = file.write_at(image.head.size(), image.kv); !kv) {
    return kv;
  }
  if (Status synced = file.sync(); !synced) {
    return synced;
  }
  context_.count([](StoreStats& stats) { ++stats.syncs; });
  // Dated by its use, not by when the writer came to it; a wrong date costs
  // an early eviction at worst.
  (void)file.set_mtime(unix_ns_of(item.dirty->sealed_at));
  item.bytes = image.bytes();
  item.temporary.emplace(std::move(*temporary));
  return {};
}

void BlockWriter::link_all(DiskTransaction& lock, std::vector<Item>& items) {
  auto fail_all = [&](const Error& error) {
    for (Item& item : items) {
      fail(item, error);
    }
  };
  if (Status counted = space_.recount(lock, false); !counted) {
    return fail_all(counted.error());
  }
  if (Status charged = settle_allowance(lock); !charged) {
    return fail_all(charged.error());
  }
  if (Status noticed = space_.notice_others(lock); !noticed) {
    return fail_all(noticed.error());
  }
  std::uint64_t wanted = 0;
  for (const Item& item : items) {
    wanted += item.fate == Fate::kPending && item.temporary ? item.bytes : 0;
  }
  auto room = space_.make_room(lock, wanted);
  if (!room) {
    return fail_all(room.error());
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    Item& item = items[i];
    if (item.fate != Fate::kPending ||
        !has_parent(item, std::span(items).first(i))) {
      continue;
    }
    if (item.temporary && item.bytes > *room) {
      fail(
          item,
          {Code::kNoSpace,
           "[store.write] the disk budget is full of "
           "pinned entries and those in use"}
      );
      continue;
    }
    if (item.temporary) {
      *room -= item.bytes;
    }
    link(lock, item);
  }
  bool any = std::any_of(items.begin(), items.end(), [](const Item& item) {
    return item.fate == Fate::kLinked;
  });
  if (!any) {
    return;
  }
  Status synced = context_.files->sync_directory(context_.blocks);
  context_.count([](StoreStats& stats) { ++stats.syncs; });
  if (!synced) {
    // Not known to be durable, so not announced; and a name that failed its
    // sync is not to be trusted by a later sync either.
    for (Item& item : items) {
      if (item.fate == Fate::kLinked && item.temporary) {
        (void)space_.remove(
            lock, {&item.block().id, 1}, DiskSpace::Reason::kUnusable
        );
      }
      fail(item, synced.error());
    }
  }
}

void BlockWriter::link(DiskTransaction& lock, Item& item) {
  FileSystem& files = *context_.files;
  std::string name = context_.file_of(item.block().id);
  if (!item.temporary) {
    // Found before the lock was ours; it may have been evicted since.
    if (files.info(name)) {
      item.fate = Fate::kLinked;
    } else if (context_.cache.requeue(item.block().id)) {
      item.fate = Fate::kRequeued;
    }
    return;
  }
  // Counted first: dying in between leaves too high a count, never too low.
  auto bytes = static_cast<std::int64_t>(item.bytes);
  if (Status counted = space_.adjust_used(lock, bytes); !counted) {
    return fail(item, counted.error());
  }
  Status linked = files.link(item.temporary->name(), name);
  if (!linked && linked.error().code == Code::kExists) {
    // Another process was first, or what is there was corrupt.
    auto file = files.open(name);
    auto head = file ? read_block_head(context_.key, item.block().id, **file)
                     : Result<BlockHead>(file.error());
    if (head) {
      linked = {};
      item.temporary.reset();
      (void)space_.adjust_used(lock, -bytes);
    } else if (head.error().code == Code::kCorrupt) {
      (void
      )space_.remove(lock, {&item.block().id, 1}, DiskSpace::Reason::kUnusable);
      linked = files.link(item.temporary->name(), name);
    } else {
      linked = head.error();
    }
  }
  if (!linked) {
    (void)space_.adjust_used(lock, -bytes);
    return fail(item, linked.error());
  }
  item.fate = Fate::kLinked;
}

bool BlockWriter::has_parent(Item& item, std::span<const Item> before) {
  if (item.block().start == 0) {
    return true;
  }
  const BlockId& parent = item.block().parent;
  for (const Item& other : before) {
    if (other.block().id == parent && other.fate != Fate::kLinked) {
      if (other.fate == Fate::kRequeued &&
          context_.cache.requeue(item.block().id)) {
        item.fate = Fate::kRequeued;
      } else {
        item.fate = Fate::kFailed;
      }
      return false;
    }
  }
  auto info = context_.files->info(context_.file_of(parent));
  if (info) {
    return true;
  }
  if (info.error().code != Code::kNotFound) {
    fail(item, info.error());
    return false;
  }
  context_.cache.forget_disk(parent);
  if (may_requeue(parent) && context_.cache.requeue(parent) &&
      context_.cache.requeue(item.block().id)) {
    item.fate = Fate::kRequeued;
  } else {
    item.fate = Fate::kFailed;
  }
  return false;
}

bool BlockWriter::may_requeue(const BlockId& parent) {
  // When parent and child keep evicting each other, the child is dropped.
  auto now = Clock::now();
  std::erase_if(requeued_, [&](const auto& item) {
    return now - item.second.first > kRequeueWindow;
  });
  Requeued& requeued = requeued_[parent];
  if (requeued.times == 0) {
    requeued.first = now;
  }
  return ++requeued.times <= kMaxRequeues;
}

void BlockWriter::fail(Item& item, const Error& error) {
  if (item.fate == Fate::kRequeued) {
    return;
  }
  if (item.fate == Fate::kPending) {
    context_.writing_failed(error);
  }
  item.fate = Fate::kFailed;
}

void BlockWriter::settle(std::vector<Item>& items) {
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;
  std::uint64_t failures = 0;
  std::vector<BlockId> unwanted;
  for (Item& item : items) {
    const BlockId& id = item.block().id;
    if (item.fate == Fate::kLinked) {
      if (!context_.cache.set_durable(id, item.bytes)) {
        unwanted.push_back(id);
      }
      ++blocks;
      bytes += item.bytes;
    } else if (item.fate != Fate::kRequeued) {
      context_.cache.set_write_failed(id);
      on_failed_(id);
      ++failures;
    }
  }
  context_.count([&](StoreStats& stats) {
    stats.written_blocks += blocks;
    stats.written_bytes += bytes;
    stats.write_failures += failures;
  });
  if (blocks > 0) {
    context_.writing_works();
  }
  remove_unwanted(unwanted);
}

void BlockWriter::remove_unwanted(std::span<const BlockId> blocks) {
  if (blocks.empty()) {
    return;
  }
  auto lock = DiskTransaction::begin(*context_.files, [&] {
    return context_.stopping.load();
  });
  // Failing that, they stay until evicted.
  if (lock) {
    (void)space_.remove(*lock, blocks, DiskSpace::Reason::kSuperseded);
  }
}

}  // namespace afterglow
