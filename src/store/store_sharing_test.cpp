#include <atomic>

#include "base/faulty_file_system.h"
#include "base/memory_file_system.h"
#include "store/block_io.h"
#include "store/testing.h"

namespace afterglow {
namespace {

using namespace testing;

/// Bytes of a full block's file.
std::uint64_t file_bytes() {
  ModelKey key = small_key();
  PagePool pool(key.layout.page_bytes());
  auto block = make_block(root_of(key), 0, make_tokens(kPageTokens, 1));
  return make_block_image(key, *block, *make_page(pool, key.layout, *block))
      .bytes();
}

/// Every block that the process believes durable is there.
void expect_beliefs_hold(MemoryDisk& disk, Process& process) {
  auto files = disk.file_system();
  for (const BlockId& id : process.cache().durable_blocks()) {
    EXPECT_TRUE(files->info(process.folder() + "/" + block_file_name(id)));
  }
}

TEST(StoreBudget, HoldsAfterEveryBatchAndAcrossRestarts) {
  MemoryDisk disk;
  std::uint64_t limit = 10 * file_bytes();
  auto files = disk.file_system();
  std::atomic<std::uint64_t> largest{0};
  std::string folder;
  auto watch = [&](auto operation, auto) -> std::optional<Error> {
    // Between a batch's links and its announcement.
    if (operation == "sync_directory" && !folder.empty()) {
      largest = std::max<std::uint64_t>(largest, block_bytes(*files, folder));
    }
    return std::nullopt;
  };
  for (int restart = 0; restart < 4; ++restart) {
    Process process(make_faulty_file_system(disk.file_system(), watch), limit);
    folder = process.folder();
    for (std::uint64_t i = 0; i < 12; ++i) {
      auto seed = static_cast<std::uint64_t>(restart) * 100 + i;
      auto tokens = make_tokens(2 * kPageTokens + 50, seed);
      process.serve(tokens);
      ASSERT_TRUE(process.flush().complete);
      EXPECT_LE(block_bytes(*files, folder), limit);
      EXPECT_EQ(
          process.store().stats().disk_used_bytes, block_bytes(*files, folder)
      );
      // What was just served is not what is evicted.
      EXPECT_TRUE(
          process.cache().lookup(root_of(process.key()), tokens).tokens() ==
          tokens.size()
      );
    }
    expect_beliefs_hold(disk, process);
    EXPECT_GT(process.store().stats().evicted_blocks.budget, 0u);
  }
  EXPECT_LE(largest, limit);
  EXPECT_GT(largest, limit / 2);
}

TEST(StoreBudget, ALowerLimitEvictsAtStart) {
  MemoryDisk disk;
  auto files = disk.file_system();
  std::string folder;
  {
    Process process(disk.file_system());
    folder = process.folder();
    for (std::uint64_t i = 0; i < 5; ++i) {
      process.serve(make_tokens(2 * kPageTokens, i));
    }
    ASSERT_TRUE(process.flush().complete);
  }
  EXPECT_EQ(list(*files, folder).size(), 10u);
  Process process(disk.file_system(), 4 * file_bytes());
  EXPECT_TRUE(eventually([&] {
    return block_bytes(*files, folder) <= 4 * file_bytes();
  }));
}

TEST(StoreBudget, TheLeastRecentlyUsedGoesFirstAlsoAfterARestart) {
  MemoryDisk disk;
  std::vector<std::vector<Token>> prompts;
  {
    Process process(disk.file_system());
    for (std::uint64_t i = 0; i < 4; ++i) {
      prompts.push_back(make_tokens(2 * kPageTokens, i));
      process.serve(prompts.back());
      ASSERT_TRUE(process.flush().complete);
    }
    process.serve(prompts[0]);  // the oldest is used again
    ASSERT_TRUE(process.flush().complete);
  }
  Process process(disk.file_system(), 8 * file_bytes());
  ASSERT_TRUE(process.wait_for_index());
  process.serve(make_tokens(2 * kPageTokens, 99));
  ASSERT_TRUE(process.flush().complete);
  EXPECT_EQ(process.restore(prompts[0]).tokens, 2 * kPageTokens);
  EXPECT_LT(process.restore(prompts[1]).tokens, 2 * kPageTokens);
  EXPECT_EQ(process.restore(prompts[2]).tokens, 2 * kPageTokens);
}

TEST(StoreBudget, BlocksOfAModelNoLongerUsedGiveWay) {
  MemoryDisk disk;
  auto files = disk.file_system();
  std::string theirs;
  {
    Process other(
        disk.file_system(), {.disk_bytes = 8 * file_bytes(), .model = 2}
    );
    theirs = other.folder();
    other.serve(make_tokens(8 * kPageTokens, 1));
    ASSERT_TRUE(other.flush().complete);
  }
  EXPECT_EQ(list(*files, theirs).size(), 8u);
  Process process(disk.file_system(), 8 * file_bytes());
  auto tokens = make_tokens(3 * kPageTokens, 2);
  process.serve(tokens);
  ASSERT_TRUE(process.flush().complete);
  EXPECT_EQ(list(*files, process.folder()).size(), 3u);
  // Children go before parents: a usable beginning is left.
  EXPECT_EQ(list(*files, theirs).size(), 5u);
  Process other(
      disk.file_system(), {.disk_bytes = 8 * file_bytes(), .model = 2}
  );
  EXPECT_EQ(
      other.restore(make_tokens(8 * kPageTokens, 1)).tokens, 5 * kPageTokens
  );
}

TEST(StoreSharing, TailsOfOthersAppearWithTheManifest) {
  MemoryDisk disk;
  Process reader(disk.file_system());
  ASSERT_TRUE(reader.wait_for_index());
  Process writer(disk.file_system());
  auto tokens = make_tokens(kPageTokens + 100, 1);
  writer.serve(tokens);
  ASSERT_TRUE(writer.flush().complete);
  EXPECT_TRUE(eventually([&] {
    return reader.restore(tokens).tokens == tokens.size();
  }));
}

TEST(StoreSharing, BothMayPublishTheSameBlocks) {
  MemoryDisk disk;
  auto files = disk.file_system();
  Process a(disk.file_system());
  Process b(disk.file_system());
  auto tokens = make_tokens(3 * kPageTokens + 10, 1);
  // Neither knows of the other's yet.
  Trail none;
  a.serve(tokens);
  b.serve(tokens);
  EXPECT_TRUE(a.flush().complete);
  EXPECT_TRUE(b.flush().complete);
  EXPECT_EQ(list(*files, a.folder()).size(), 4u);
  EXPECT_EQ(a.cache().durable_blocks().size(), 4u);
  EXPECT_EQ(b.cache().durable_blocks().size(), 4u);
  EXPECT_EQ(b.store().stats().disk_used_bytes, block_bytes(*files, a.folder()));
}

TEST(StoreSharing, ACorruptFileUnderTheNameIsReplaced) {
  MemoryDisk disk;
  auto files = disk.file_system();
  Process process(disk.file_system());
  process.serve(make_tokens(kPageTokens, 1));
  ASSERT_TRUE(process.flush().complete);
  std::string base = list(*files, process.folder()).front();
  std::string name = process.folder() + "/" + base;
  auto good = read_file(*files, name);
  auto bytes = good;
  bytes[200] ^= std::byte{1};
  write_file(*files, name, bytes);
  ASSERT_TRUE(process.cache().requeue(*parse_block_file_name(base)));
  ASSERT_TRUE(process.flush().complete);
  EXPECT_EQ(read_file(*files, name), good);
  EXPECT_EQ(process.store().stats().disk_used_bytes, good.size());
}

TEST(StoreSharing, AParentThatVanishedIsWrittenAgainBeforeItsChild) {
  MemoryDisk disk;
  auto files = disk.file_system();
  Process process(disk.file_system());
  auto tokens = make_tokens(2 * kPageTokens, 1);
  process.serve(tokens);
  ASSERT_TRUE(process.flush().complete);
  for (const std::string& name : list(*files, process.folder())) {
    ASSERT_TRUE(files->remove(process.folder() + "/" + name));
  }
  process.serve(join(tokens, make_tokens(kPageTokens, 2)));
  EXPECT_TRUE(process.flush().complete);
  EXPECT_EQ(list(*files, process.folder()).size(), 3u);
}

TEST(StoreSharing, OthersEvictionsAreNoticed) {
  MemoryDisk disk;
  auto files = disk.file_system();
  Process a(disk.file_system());
  a.serve(make_tokens(4 * kPageTokens, 1));
  ASSERT_TRUE(a.flush().complete);
  {
    Process b(disk.file_system(), 4 * file_bytes());
    ASSERT_TRUE(b.wait_for_index());
    b.serve(make_tokens(2 * kPageTokens, 2));
    ASSERT_TRUE(b.flush().complete);
  }
  EXPECT_EQ(list(*files, a.folder()).size(), 4u);
  a.serve(make_tokens(20, 3));
  ASSERT_TRUE(a.flush().complete);
  expect_beliefs_hold(disk, a);
  // Two of its own, the new one, and two of b's, read from the manifest.
  EXPECT_EQ(a.cache().durable_blocks().size(), 5u);
}

TEST(StoreSharing, ManyRequestsFromTwoProcessesUnderEviction) {
  MemoryDisk disk;
  auto files = disk.file_system();
  std::uint64_t limit = 12 * file_bytes();
  auto shared = make_tokens(2 * kPageTokens, 1000);
  std::string folder;
  std::atomic<std::uint64_t> reused{0};
  {
    Process a(disk.file_system(), limit);
    Process b(disk.file_system(), limit);
    folder = a.folder();
    auto load = [&](Process& process, std::uint64_t seed) {
      std::mt19937_64 random(seed);
      for (int i = 0; i < 60; ++i) {
        auto own = make_tokens(100 + random() % 600, random() % 12);
        reused += process.serve(join(shared, own));
        if (random() % 8 == 0) {
          process.cache().shrink_ram(~std::uint64_t{0});
        }
      }
      process.flush();
    };
    std::thread other([&] { load(b, 2); });
    load(a, 1);
    other.join();
    a.flush();
    b.flush();
    EXPECT_LE(block_bytes(*files, folder), limit);
    EXPECT_EQ(a.store().stats().corrupt_blocks, 0u);
    EXPECT_EQ(b.store().stats().corrupt_blocks, 0u);
  }
  EXPECT_GT(reused, 60 * kPageTokens);
  EXPECT_LE(block_bytes(*files, folder), limit);
  EXPECT_TRUE(list(*files, "v1/tmp").empty());
}

TEST(StoreSharing, TheManifestDoesNotGrowWithTheTurnsOfAChat) {
  MemoryDisk disk;
  auto files = disk.file_system();
  Process process(disk.file_system());
  std::vector<Token> chat;
  for (std::uint64_t turn = 0; turn < 12; ++turn) {
    chat = join(chat, make_tokens(100, turn));
    process.serve(chat);
    ASSERT_TRUE(process.flush().complete);
  }
  auto text = read_file(*files, "v1/manifest.json");
  std::string_view view(reinterpret_cast<char*>(text.data()), text.size());
  std::size_t entries = 0;
  for (std::size_t at = 0; (at = view.find("\"model\"", at)) != view.npos;
       ++at) {
    ++entries;
  }
  EXPECT_EQ(entries, 1u);
}

TEST(StoreSharing, AFlushReportCountsBlocksBelowItsRootOnly) {
  spdlog::set_level(spdlog::level::off);
  MemoryDisk disk;
  std::atomic<bool> fails{false};
  Process process(
      make_faulty_file_system(
          disk.file_system(),
          [&](auto operation, auto) -> std::optional<Error> {
            return fails && operation == "link"
                       ? std::optional(Error{Code::kIo, "[test] no"})
                       : std::nullopt;
          }
      ),
      {.tail_delay = std::chrono::hours(1)}
  );
  auto root = [&](const char* name) {
    return root_id(process.key().fingerprint, process.key().spec, name);
  };
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  for (bool failing : {false, true}) {
    fails = failing;
    for (std::uint64_t i = 0; i < 5; ++i) {
      auto tokens = make_tokens(20, 10 * i + (failing ? 1 : 0));
      process.serve(tokens, {}, root(i < 2 ? "mine" : "yours"));
    }
    FlushReport report = process.store().flush(deadline, root("mine"));
    EXPECT_TRUE(report.complete);
    EXPECT_EQ(report.durable_blocks, failing ? 0u : 2u);
    EXPECT_EQ(report.failed_blocks, failing ? 2u : 0u);
  }
}

TEST(StoreSharing, TailsWaitAndFullBlocksDoNot) {
  MemoryDisk disk;
  Process process(disk.file_system(), {.tail_delay = std::chrono::hours(1)});
  process.serve(make_tokens(kPageTokens + 10, 1));
  EXPECT_TRUE(eventually([&] {
    return process.store().stats().written_blocks == 1;
  }));
  EXPECT_EQ(process.cache().stats().dirty_blocks, 1u);
  FlushReport report = process.flush();
  EXPECT_TRUE(report.complete);
  EXPECT_EQ(report.durable_blocks, 1u);
  EXPECT_EQ(process.store().stats().written_blocks, 2u);
}

}  // namespace
}  // namespace afterglow
