#include <atomic>

#include "base/faulty_file_system.h"
#include "base/memory_file_system.h"
#include "store/testing.h"

// Files that others remove while their pages are in this process' memory.

namespace afterglow {
namespace {

using namespace testing;

std::vector<std::string> names_of(
    const Process& process, const std::vector<Token>& tokens
) {
  std::vector<std::string> names;
  BlockId parent = root_of(process.key());
  for (std::size_t at = 0; at < tokens.size(); at += kPageTokens) {
    std::size_t n = std::min(kPageTokens, tokens.size() - at);
    parent = block_id(parent, at, std::span(tokens).subspan(at, n));
    names.push_back(block_file_name(parent));
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// A process that keeps prompts in memory, and another on its directory.
struct StoreRenewal : ::testing::Test {
  std::vector<std::string> stored() {
    auto names = list(*files, a.folder());
    std::sort(names.begin(), names.end());
    return names;
  }
  void clear_by_another() {
    Process other(disk.file_system());
    auto cleared = other.store().clear({});
    ASSERT_TRUE(cleared) << cleared.error().message;
    ASSERT_TRUE(stored().empty());
  }
  /// Tokens of the prompt that a newcomer finds.
  std::size_t found_later(const std::vector<Token>& tokens) {
    Process later(disk.file_system());
    EXPECT_TRUE(later.wait_for_index());
    return later.restore(tokens).tokens;
  }

  MemoryDisk disk;
  std::unique_ptr<FileSystem> files = disk.file_system();
  Process a{disk.file_system(), {.tail_delay = std::chrono::hours(1)}};
  std::vector<Token> mine = make_tokens(2 * kPageTokens + 50, 1);
  std::vector<Token> unused = make_tokens(2 * kPageTokens + 50, 2);
};

TEST_F(StoreRenewal, WhatIsServedAfterAClearIsDurableAgainAndNothingElse) {
  a.serve(mine);
  a.serve(unused);
  ASSERT_TRUE(a.flush().complete);
  ASSERT_EQ(stored().size(), 6u);
  clear_by_another();
  EXPECT_EQ(a.serve(mine), mine.size());
  FlushReport report = a.flush();
  EXPECT_TRUE(report.complete);
  EXPECT_EQ(report.failed_blocks, 0u);
  EXPECT_EQ(stored(), names_of(a, mine));
  EXPECT_EQ(found_later(mine), mine.size());
  EXPECT_EQ(found_later(unused), 0u);
  EXPECT_EQ(a.store().stats().disk_used_bytes, block_bytes(*files, a.folder()));
}

TEST_F(StoreRenewal, AlsoWithoutAFlush) {
  auto whole = make_tokens(3 * kPageTokens, 3);
  a.serve(whole);
  ASSERT_TRUE(a.flush().complete);
  clear_by_another();
  a.serve(whole);
  EXPECT_TRUE(eventually([&] { return stored() == names_of(a, whole); }));
}

TEST_F(StoreRenewal, AFlushAloneBringsNothingBack) {
  a.serve(mine);
  ASSERT_TRUE(a.flush().complete);
  clear_by_another();
  EXPECT_TRUE(a.flush().complete);
  EXPECT_TRUE(stored().empty());
  EXPECT_EQ(a.cache().stats().disk_blocks, 0u);
  EXPECT_EQ(a.serve(mine), mine.size()) << "memory has it still";
}

TEST_F(StoreRenewal, APinBringsBackWhatItPins) {
  a.serve(mine);
  a.serve(unused);
  ASSERT_TRUE(a.flush().complete);
  BlockId last = a.restore(mine).path.back().block->id;
  clear_by_another();
  ASSERT_TRUE(a.cache().set_pinned(last, mine.size(), true));
  EXPECT_TRUE(a.flush().complete);
  EXPECT_EQ(stored(), names_of(a, mine));
  Process later(disk.file_system());
  ASSERT_TRUE(later.wait_for_index());
  auto entries = later.cache().entries();
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_TRUE(entries[0].pinned);
  EXPECT_EQ(entries[0].length, mine.size());
}

TEST_F(StoreRenewal, AnIdleProcessNoticesWhatOthersRemove) {
  a.serve(mine);
  ASSERT_TRUE(a.flush().complete);
  clear_by_another();
  EXPECT_TRUE(eventually([&] { return a.cache().stats().disk_blocks == 0; }));
  EXPECT_EQ(a.cache().stats().ram_pages, 3u);
  EXPECT_EQ(a.cache().stats().dirty_blocks, 0u);
}

TEST_F(StoreRenewal, FilesThatWentByHandComeBackWithAUse) {
  a.serve(mine);
  ASSERT_TRUE(a.flush().complete);
  auto names = names_of(a, mine);
  ASSERT_TRUE(files->remove(a.folder() + "/" + names[1]));
  a.serve(mine);
  ASSERT_TRUE(a.flush().complete);
  EXPECT_EQ(stored(), names);
  // And where all went, the lock too, that is noticed.
  for (const std::string& name : names) {
    ASSERT_TRUE(files->remove(a.folder() + "/" + name));
  }
  ASSERT_TRUE(files->remove("v1/lock"));
  EXPECT_TRUE(eventually([&] { return a.cache().stats().disk_blocks == 0; }));
}

TEST_F(StoreRenewal, WhatIsRemovedHereWhileItIsWrittenAgainStaysRemoved) {
  std::atomic<bool> armed{false};
  Process* acting = nullptr;
  EntryRecord entry;
  auto remove_once = [&](auto operation, auto) -> std::optional<Error> {
    if (operation == "link" && armed.exchange(false)) {
      EXPECT_TRUE(acting->cache().remove(entry.path.back(), entry.length));
    }
    return std::nullopt;
  };
  Process b(
      make_faulty_file_system(disk.file_system(), remove_once),
      {.tail_delay = std::chrono::hours(1)}
  );
  acting = &b;
  b.serve(mine);
  ASSERT_TRUE(b.flush().complete);
  entry = b.cache().entries().at(0);
  clear_by_another();
  b.serve(mine);
  armed = true;  // its last block at least is still to be written
  EXPECT_TRUE(b.flush().complete);
  EXPECT_FALSE(armed);
  EXPECT_TRUE(b.flush().complete);
  EXPECT_TRUE(stored().empty());
  EXPECT_EQ(b.cache().stats().blocks, 0u);
  EXPECT_EQ(found_later(mine), 0u);
}

}  // namespace
}  // namespace afterglow
