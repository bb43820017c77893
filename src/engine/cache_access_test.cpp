#include "engine/cache_access.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/faulty_file_system.h"
#include "base/memory_file_system.h"
#include "store/testing.h"

// What is told of a pin must be so.

namespace afterglow {
namespace {

using testing::Process;

struct CacheAccessTest : ::testing::Test {
  std::optional<Error> fault(std::string_view operation) {
    const char* failing_now = failing;
    if (failing_now != nullptr && operation == failing_now) {
      return Error{Code::kIo, "[test] no"};
    }
    return std::nullopt;
  }
  /// The entry's blocks that are on disk.
  std::size_t stored() {
    return testing::list(*files, process.folder()).size();
  }
  void remove_files() {
    for (const std::string& name : testing::list(*files, process.folder())) {
      ASSERT_TRUE(files->remove(process.folder() + "/" + name));
    }
  }
  EntryName only_name() {
    auto entries = access.entries("");
    EXPECT_EQ(entries.size(), 1u);
    return *parse_entry_name(entry_name(entries.at(0).record));
  }

  std::atomic<const char*> failing{nullptr};
  MemoryDisk disk;
  std::unique_ptr<FileSystem> files = disk.file_system();
  Process process{
      make_faulty_file_system(disk.file_system(), [this](auto operation, auto) {
        return fault(operation);
      })};
  CacheAccess access{process.cache(), &process.store(), [](const std::string&) {
                       return BlockId();
                     }};
  std::vector<Token> tokens = testing::make_tokens(2 * kPageTokens + 50, 1);
};

TEST_F(CacheAccessTest, APinBringsBackWhatOthersRemoved) {
  process.serve(tokens);
  ASSERT_TRUE(process.flush().complete);
  remove_files();
  auto pinned = access.set_pinned("", only_name(), true);
  ASSERT_TRUE(pinned.ok()) << pinned.error().message;
  EXPECT_TRUE(pinned->pinned);
  EXPECT_EQ(pinned->path.size(), 3u);
  EXPECT_EQ(stored(), 3u);
  EXPECT_EQ(access.entries("").at(0).disk_blocks, 3u);
}

TEST_F(CacheAccessTest, APinThatDoesNotReachTheDiskSaysSo) {
  spdlog::set_level(spdlog::level::off);
  process.serve(tokens);
  ASSERT_TRUE(process.flush().complete);
  remove_files();
  failing = "link";
  auto pinned = access.set_pinned("", only_name(), true);
  ASSERT_FALSE(pinned.ok());
  EXPECT_EQ(pinned.error().code, Code::kUnavailable);
  EXPECT_EQ(
      pinned.error().message,
      "[cache.pin] entry " + short_entry_name(access.entries("").at(0).record) +
          " is pinned, but so far in memory only; 3 of its 3 blocks are not "
          "on disk: [test] no; try again"
  );
  EXPECT_TRUE(access.entries("").at(0).record.pinned);
  failing = nullptr;
  EXPECT_TRUE(access.set_pinned("", only_name(), true).ok());
  EXPECT_EQ(stored(), 3u);
}

TEST_F(CacheAccessTest, ADecisionThatTheIndexDoesNotHaveSaysSo) {
  spdlog::set_level(spdlog::level::off);
  process.serve(tokens);
  ASSERT_TRUE(process.flush().complete);
  failing = "rename";
  auto pinned = access.set_pinned("", only_name(), true);
  ASSERT_FALSE(pinned.ok());
  EXPECT_EQ(pinned.error().code, Code::kUnavailable);
  auto unpinned = access.set_pinned("", only_name(), false);
  ASSERT_FALSE(unpinned.ok());
  EXPECT_EQ(unpinned.error().code, Code::kUnavailable);
  failing = nullptr;
  EXPECT_TRUE(access.set_pinned("", only_name(), true).ok());
}

TEST_F(CacheAccessTest, AnEntryWhoseBlocksAreNowhereIsNotPinned) {
  process.serve(tokens);
  ASSERT_TRUE(process.flush().complete);
  EntryName name = only_name();
  process.cache().shrink_ram(~std::uint64_t{0});
  remove_files();
  auto pinned = access.set_pinned("", name, true);
  ASSERT_FALSE(pinned.ok());
  EXPECT_EQ(pinned.error().code, Code::kNotFound);
}

}  // namespace
}  // namespace afterglow
