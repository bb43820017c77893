#include <atomic>
#include <mutex>

#include "base/faulty_file_system.h"
#include "base/memory_file_system.h"
#include "store/manifest.h"
#include "store/testing.h"

namespace afterglow {
namespace {

using namespace testing;

BlockId root_named(const Process& process, std::string_view name_space) {
  return root_id(process.key().fingerprint, process.key().spec, name_space);
}

std::size_t entries_of(FileSystem& files, const std::string& model) {
  auto manifest = read_manifest(files);
  EXPECT_TRUE(manifest);
  return static_cast<std::size_t>(std::count_if(
      manifest->entries.begin(),
      manifest->entries.end(),
      [&](const ManifestEntry& entry) { return entry.model == model; }
  ));
}

TEST(StoreClear, NothingOfTheModelIsLeftAndNothingElseGoes) {
  MemoryDisk disk;
  auto files = disk.file_system();
  Process other(disk.file_system(), {.model = 2});
  other.serve(make_tokens(300, 9));
  ASSERT_TRUE(other.flush().complete);
  auto tokens = make_tokens(2 * kPageTokens + 9, 1);
  {
    Process process(disk.file_system());
    process.serve(tokens, {{EntryType::kSystem, kPageTokens}});
    ASSERT_TRUE(process.flush().complete);
    BlockId end = process.restore(tokens).path.back().block->id;
    ASSERT_TRUE(process.cache().set_pinned(end, tokens.size(), true));
    auto cleared = process.store().clear({});
    ASSERT_TRUE(cleared) << cleared.error().message;
    EXPECT_EQ(*cleared, 3u);
    EXPECT_EQ(process.store().stats().evicted_blocks.cleared, 3u);
    EXPECT_TRUE(list(*files, process.folder()).empty());
    EXPECT_TRUE(process.cache().entries().empty());
    EXPECT_EQ(entries_of(*files, process.key().folder()), 0u);
    EXPECT_EQ(entries_of(*files, other.key().folder()), 1u);
    EXPECT_EQ(process.restore(tokens).tokens, 0u);
    EXPECT_EQ(
        process.store().stats().disk_used_bytes,
        block_bytes(*files, other.folder())
    );
    // It takes new blocks as before.
    process.serve(tokens);
    ASSERT_TRUE(process.flush().complete);
    EXPECT_EQ(list(*files, process.folder()).size(), 3u);
    ASSERT_TRUE(process.store().clear({}));
  }
  Process process(disk.file_system());
  ASSERT_TRUE(process.wait_for_index());
  EXPECT_EQ(process.restore(tokens).tokens, 0u);
  EXPECT_EQ(other.restore(make_tokens(300, 9)).tokens, 300u);
}

TEST(StoreClear, WithARootOnlyWhatLiesBelowItGoes) {
  MemoryDisk disk;
  auto files = disk.file_system();
  auto tokens = make_tokens(2 * kPageTokens + 9, 1);
  Process process(disk.file_system());
  BlockId mine = root_named(process, "mine");
  process.serve(tokens);
  process.serve(tokens, {}, mine);
  ASSERT_TRUE(process.flush().complete);
  {
    // Blocks that this process knows nothing of go too, by their parents.
    Process unseen(disk.file_system());
    auto longer = join(
        std::vector<Token>(tokens.begin(), tokens.begin() + 2 * kPageTokens),
        make_tokens(2 * kPageTokens, 3)
    );
    unseen.serve(longer, {}, mine);
    ASSERT_TRUE(unseen.flush().complete);
    unseen.serve(make_tokens(kPageTokens, 4));
    ASSERT_TRUE(unseen.flush().complete);
  }
  EXPECT_EQ(list(*files, process.folder()).size(), 9u);
  auto cleared = process.store().clear(mine);
  ASSERT_TRUE(cleared) << cleared.error().message;
  EXPECT_EQ(*cleared, 5u);
  EXPECT_EQ(list(*files, process.folder()).size(), 4u);
  EXPECT_EQ(process.restore(tokens, mine).tokens, 0u);
  EXPECT_EQ(process.restore(tokens).tokens, tokens.size());
  EXPECT_EQ(process.restore(make_tokens(kPageTokens, 4)).tokens, kPageTokens);
}

TEST(StoreClear, WhatARequestUsesStays) {
  MemoryDisk disk;
  auto files = disk.file_system();
  Process process(disk.file_system());
  auto tokens = make_tokens(2 * kPageTokens, 1);
  process.serve(tokens);
  process.serve(make_tokens(2 * kPageTokens, 2));
  ASSERT_TRUE(process.flush().complete);
  Match match = process.cache().lookup(root_of(process.key()), tokens);
  auto cleared = process.store().clear({});
  ASSERT_TRUE(cleared);
  EXPECT_EQ(*cleared, 2u);
  EXPECT_EQ(list(*files, process.folder()).size(), 2u);
  match = Match();
  EXPECT_EQ(*process.store().clear({}), 2u);
  EXPECT_TRUE(list(*files, process.folder()).empty());
}

TEST(StoreClear, ABlockThatIsBeingWrittenDoesNotComeBack) {
  MemoryDisk disk;
  auto files = disk.file_system();
  Process* cleared_by = nullptr;
  std::atomic<bool> armed{false};
  std::atomic<bool> is_served{false};
  Process process(make_faulty_file_system(
      disk.file_system(),
      [&](auto operation, auto name) -> std::optional<Error> {
        if (operation == "sync" && name.starts_with("v1/tmp") &&
            armed.exchange(false)) {
          EXPECT_TRUE(eventually([&] { return is_served.load(); }));
          EXPECT_TRUE(cleared_by->store().clear({}));
        }
        return std::nullopt;
      }
  ));
  cleared_by = &process;
  process.serve(make_tokens(kPageTokens, 5));
  ASSERT_TRUE(process.flush().complete);
  armed = true;
  process.serve(make_tokens(2 * kPageTokens + 9, 1));
  is_served = true;  // no request uses its blocks any more
  ASSERT_TRUE(process.flush().complete);
  EXPECT_FALSE(armed);
  EXPECT_TRUE(list(*files, process.folder()).empty());
  EXPECT_EQ(process.store().stats().disk_used_bytes, 0u);
  EXPECT_EQ(process.cache().stats().dirty_blocks, 0u);
}

TEST(StoreClear, FilesThatCannotBeRemovedAreAnError) {
  spdlog::set_level(spdlog::level::off);
  MemoryDisk disk;
  auto files = disk.file_system();
  std::atomic<bool> armed{false};
  Process process(make_faulty_file_system(
      disk.file_system(),
      [&](auto operation, auto name) -> std::optional<Error> {
        bool fails =
            operation == "remove" && armed && name.ends_with(".safetensors");
        return fails ? std::optional(Error{Code::kPermission, "[test] no"})
                     : std::nullopt;
      }
  ));
  process.serve(make_tokens(2 * kPageTokens, 1));
  ASSERT_TRUE(process.flush().complete);
  armed = true;
  auto cleared = process.store().clear({});
  ASSERT_FALSE(cleared);
  EXPECT_EQ(
      cleared.error().message,
      "[store.clear] 2 of 2 block files could not be removed: [test] no"
  );
  armed = false;
  // They are strangers now, and go with the next call.
  EXPECT_EQ(*process.store().clear({}), 2u);
  EXPECT_TRUE(list(*files, process.folder()).empty());
}

TEST(StoreClear, OtherProcessesNoticeAndMayWriteAnew) {
  MemoryDisk disk;
  auto files = disk.file_system();
  Process a(disk.file_system());
  auto tokens = make_tokens(2 * kPageTokens, 1);
  a.serve(tokens);
  ASSERT_TRUE(a.flush().complete);
  Process b(disk.file_system());
  ASSERT_TRUE(b.wait_for_index());
  ASSERT_TRUE(b.store().clear({}));
  EXPECT_TRUE(list(*files, a.folder()).empty());
  // a has the pages in RAM and makes them durable before what follows them.
  a.serve(join(tokens, make_tokens(kPageTokens, 2)));
  ASSERT_TRUE(a.flush().complete);
  EXPECT_EQ(a.cache().durable_blocks().size(), 3u);
  EXPECT_EQ(list(*files, a.folder()).size(), 3u);
}

}  // namespace
}  // namespace afterglow
