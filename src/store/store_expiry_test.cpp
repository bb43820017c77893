#include <atomic>

#include "base/faulty_file_system.h"
#include "base/memory_file_system.h"
#include "store/clock.h"
#include "store/disk_lock.h"
#include "store/manifest.h"
#include "store/testing.h"

namespace afterglow {
namespace {

using namespace testing;

constexpr std::int64_t kHour = 3'600'000'000'000;

/// A cache's clock that tests move forward.
struct Clock {
  std::atomic<std::int64_t> ahead{0};

  CacheClock of_cache() {
    CacheClock clock = CacheClock::system();
    clock.unix_ns = [this] { return unix_now_ns() + ahead; };
    return clock;
  }
};

TEST(StoreExpiry, ExpiredBlocksAreUnlinkedAndOthersNotice) {
  MemoryDisk disk;
  auto files = disk.file_system();
  Clock clock;
  Process process(
      disk.file_system(), {.ttl_ns = kHour, .clock = clock.of_cache()}
  );
  Process other(disk.file_system());
  auto tokens = make_tokens(2 * kPageTokens + 9, 1);
  auto kept = make_tokens(kPageTokens, 2);
  process.serve(tokens);
  process.serve(kept);
  ASSERT_TRUE(process.flush().complete);
  BlockId end = process.restore(kept).path.back().block->id;
  ASSERT_TRUE(process.cache().set_pinned(end, kept.size(), true));
  EXPECT_EQ(other.restore(tokens).disk_tokens / kPageTokens, 2u);
  std::uint64_t epoch =
      DiskTransaction::begin(*files, [] { return false; })->state().epoch;
  clock.ahead = 2 * kHour;
  EXPECT_EQ(
      process.cache().lookup(root_of(process.key()), tokens).tokens(), 0u
  );
  EXPECT_TRUE(eventually([&] {
    return list(*files, process.folder()).size() == 1;
  }));
  EXPECT_TRUE(eventually([&] {
    return process.store().stats().evicted_blocks.expired == 3;
  }));
  EXPECT_GT(
      DiskTransaction::begin(*files, [] { return false; })->state().epoch, epoch
  );
  EXPECT_EQ(process.restore(kept).tokens, kept.size());
  ASSERT_TRUE(process.flush().complete);
  // The other process no longer believes in what went.
  other.serve(make_tokens(20, 3));
  ASSERT_TRUE(other.flush().complete);
  for (const BlockId& id : other.cache().durable_blocks()) {
    EXPECT_TRUE(files->info(other.folder() + "/" + block_file_name(id)));
  }
}

TEST(StoreExpiry, WhatCannotBeUnlinkedNowGoesLater) {
  spdlog::set_level(spdlog::level::off);
  MemoryDisk disk;
  auto files = disk.file_system();
  Clock clock;
  std::atomic<int> failures{0};
  std::atomic<bool> fails{true};
  Process process(
      make_faulty_file_system(
          disk.file_system(),
          [&](auto operation, auto name) -> std::optional<Error> {
            if (operation != "remove" || !fails ||
                !name.ends_with(".safetensors")) {
              return std::nullopt;
            }
            ++failures;
            return Error{Code::kIo, "[test] no"};
          }
      ),
      {.ttl_ns = kHour, .clock = clock.of_cache()}
  );
  process.serve(make_tokens(kPageTokens, 1));
  ASSERT_TRUE(process.flush().complete);
  clock.ahead = 2 * kHour;
  EXPECT_TRUE(eventually([&] { return failures >= 2; }));
  EXPECT_EQ(list(*files, process.folder()).size(), 1u);
  fails = false;
  EXPECT_TRUE(eventually([&] { return list(*files, process.folder()).empty(); })
  );
}

TEST(StoreExpiry, ExpiredEntriesLeaveTheManifest) {
  MemoryDisk disk;
  auto files = disk.file_system();
  auto old_model = [&](std::int64_t ttl_ns, bool pinned) {
    ManifestEntry entry;
    entry.model = std::string(64, pinned ? 'a' : 'b') + "-" +
                  std::string(64, ttl_ns == 0 ? '0' : '1');
    entry.record.path = {BlockId{}};
    entry.record.length = 5;
    entry.record.last_use_ns = unix_now_ns() - kHour;
    entry.record.ttl_ns = ttl_ns;
    entry.record.pinned = pinned;
    return entry;
  };
  Process process(disk.file_system());
  Manifest manifest{
      {old_model(0, false),
       old_model(kHour / 2, false),
       old_model(2 * kHour, true),
       old_model(kHour / 2, true)}};
  manifest.entries[2].model[0] = 'c';
  ASSERT_TRUE(write_manifest(*files, manifest));
  process.serve(make_tokens(20, 1));
  ASSERT_TRUE(process.flush().complete);
  auto after = read_manifest(*files);
  ASSERT_TRUE(after);
  // Without the second, and with the process's own.
  EXPECT_EQ(after->entries.size(), 4u);
  for (const ManifestEntry& entry : after->entries) {
    EXPECT_NE(entry.model, manifest.entries[1].model);
  }
}

TEST(StoreManifest, APinMadeElsewhereArrivesThoughOurOwnSaveReplacesTheFile) {
  MemoryDisk disk;
  Process other(disk.file_system());
  auto tokens = make_tokens(kPageTokens + 5, 1);
  std::atomic<bool> armed{false};
  Process process(make_faulty_file_system(
      disk.file_system(),
      [&](auto operation, auto name) -> std::optional<Error> {
        // We saw the manifest, and are about to lock and replace it.
        if (operation == "try_lock" && name == "v1/lock" &&
            armed.exchange(false)) {
          BlockId end = other.restore(tokens).path.back().block->id;
          EXPECT_TRUE(other.cache().set_pinned(end, tokens.size(), true));
          EXPECT_TRUE(other.flush().complete);
        }
        return std::nullopt;
      }
  ));
  process.serve(tokens);
  ASSERT_TRUE(process.flush().complete);
  ASSERT_TRUE(eventually([&] {
    return other.restore(tokens).tokens == tokens.size();
  }));
  armed = true;
  ASSERT_TRUE(process.flush().complete);
  EXPECT_FALSE(armed);
  auto entries = process.cache().entries();
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_TRUE(entries[0].pinned);
  // And back: the newer decision wins whoever made it.
  ASSERT_TRUE(process.cache().set_pinned(
      entries[0].path.back(), entries[0].length, false
  ));
  ASSERT_TRUE(process.flush().complete);
  EXPECT_TRUE(eventually([&] { return !other.cache().entries()[0].pinned; }));
}

TEST(StoreManifest, AnUnpinIsNotUndoneByAnOlderManifestOfAFileUsedSince) {
  // A hit dates the last block's file a little later than the entry itself;
  // that date must not make an old record of the entry the newer one.
  MemoryDisk disk;
  auto files = disk.file_system();
  auto tokens = make_tokens(kPageTokens, 1);
  Process process(disk.file_system());
  process.serve(tokens);
  BlockId end = process.restore(tokens).path.back().block->id;
  ASSERT_TRUE(process.cache().set_pinned(end, tokens.size(), true));
  ASSERT_TRUE(process.flush().complete);
  auto pinned = read_manifest(*files);
  ASSERT_TRUE(pinned);
  ASSERT_TRUE(process.cache().set_pinned(end, tokens.size(), false));
  std::string file = process.folder() + "/" + block_file_name(end);
  ASSERT_TRUE((*files->open(file))->set_mtime(unix_now_ns() + kHour));
  ASSERT_TRUE(write_manifest(*files, *pinned));
  ASSERT_TRUE(process.flush().complete);
  EXPECT_FALSE(process.cache().entries().at(0).pinned);
  EXPECT_FALSE(read_manifest(*files)->entries.at(0).record.pinned);
}

TEST(StoreCap, TheDaysBytesAreSharedByAllAndTheRestWaits) {
  spdlog::set_level(spdlog::level::off);
  MemoryDisk disk;
  auto files = disk.file_system();
  auto first = make_tokens(4 * kPageTokens, 1);
  std::uint64_t each = block_file_bytes(
      small_key(),
      *make_block(root_of(small_key()), 0, make_tokens(kPageTokens, 1))
  );
  // Manifests count as well: room for six blocks and some of those.
  ProcessOptions options{.daily_write_bytes = 6 * each + each / 2};
  Process a(disk.file_system(), options);
  Process b(disk.file_system(), options);
  a.serve(first);
  EXPECT_TRUE(a.flush().complete);
  EXPECT_EQ(a.cache().durable_blocks().size(), 4u);
  EXPECT_EQ(a.store().stats().capped_blocks, 0u);
  auto second = make_tokens(4 * kPageTokens, 2);
  b.serve(second);
  EXPECT_TRUE(b.flush().complete);
  EXPECT_EQ(b.store().stats().written_blocks, 2u);
  EXPECT_EQ(b.store().stats().capped_blocks, 2u);
  EXPECT_EQ(b.store().stats().write_failures, 2u);
  EXPECT_TRUE(b.store().stats().writing);
  EXPECT_EQ(list(*files, a.folder()).size(), 6u);
  {
    auto lock = DiskTransaction::begin(*files, [] { return false; });
    ASSERT_TRUE(lock);
    std::uint64_t manifests =
        a.store().stats().manifest_bytes + b.store().stats().manifest_bytes;
    EXPECT_EQ(lock->written_today(), 6 * each + manifests);
    // The next day.
    DiskState state = lock->state();
    ASSERT_GT(state.day, 0u);
    --state.day;
    ASSERT_TRUE(lock->update(state));
    EXPECT_EQ(lock->written_today(), 0u);
  }
  // Those that were left out are written with what follows them.
  b.serve(join(second, make_tokens(10, 3)));
  ASSERT_TRUE(b.flush().complete);
  EXPECT_EQ(b.restore(second).tokens, second.size());
  EXPECT_EQ(list(*files, a.folder()).size(), 9u);
}

TEST(StoreCap, WhatIsThereAlreadyCostsNothing) {
  MemoryDisk disk;
  auto files = disk.file_system();
  auto tokens = make_tokens(3 * kPageTokens, 1);
  Process a(disk.file_system(), {.daily_write_bytes = std::uint64_t{1} << 30});
  Process b(disk.file_system(), {.daily_write_bytes = std::uint64_t{1} << 30});
  a.serve(tokens);
  ASSERT_TRUE(a.flush().complete);
  for (const BlockId& id : a.cache().durable_blocks()) {
    ASSERT_TRUE(a.cache().requeue(id));
  }
  ASSERT_TRUE(a.flush().complete);
  EXPECT_EQ(a.store().stats().written_blocks, 6u);
  auto lock = DiskTransaction::begin(*files, [] { return false; });
  ASSERT_TRUE(lock);
  std::uint64_t manifests =
      a.store().stats().manifest_bytes + b.store().stats().manifest_bytes;
  EXPECT_EQ(lock->written_today(), block_bytes(*files, a.folder()) + manifests);
}

}  // namespace
}  // namespace afterglow
