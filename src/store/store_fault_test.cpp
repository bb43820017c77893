#include <atomic>
#include <mutex>

#include "base/faulty_file_system.h"
#include "base/memory_file_system.h"
#include "store/block_io.h"
#include "store/testing.h"

namespace afterglow {
namespace {

using namespace testing;

/// Makes the n-th operation fail, or all from there on.
class FailNth {
 public:
  FailNth(std::uint64_t n, Code code, bool for_good)
      : n_(n), code_(code), for_good_(for_good) {}

  std::optional<Error> operator()(
      std::string_view operation, std::string_view name
  ) {
    std::uint64_t number = count_.fetch_add(1);
    bool fails = for_good_ ? number >= n_ : number == n_;
    if (!fails) {
      return std::nullopt;
    }
    reached_ = true;
    return Error{
        code_, "[test] " + std::string(operation) + " " + std::string(name)};
  }

  bool reached() const { return reached_; }

 private:
  std::uint64_t n_;
  Code code_;
  bool for_good_;
  std::atomic<std::uint64_t> count_{0};
  std::atomic<bool> reached_{false};
};

std::unique_ptr<FileSystem> faulty(MemoryDisk& disk, FaultHook hook) {
  return make_faulty_file_system(disk.file_system(), std::move(hook));
}

const auto kFirst = make_tokens(2 * kPageTokens + 30, 1);
const auto kLonger = join(kFirst, make_tokens(kPageTokens, 2));

/// Serves, grows, flushes; returns what is announced durable at the end.
std::vector<BlockId> serve_some(Process& process) {
  process.serve(kFirst);
  process.flush();
  process.serve(kLonger);
  process.flush();
  return process.cache().durable_blocks();
}

/// A budget that serve_much exceeds.
std::uint64_t small_budget() {
  ModelKey key = small_key();
  auto block = make_block(root_of(key), 0, make_tokens(kPageTokens, 1));
  return 5 * block_file_bytes(key, *block);
}

/// The same with everything else a store does to its files: evictions, tails
/// that are superseded, a clear that may fail.
void serve_much(Process& process) {
  BlockId other =
      root_id(process.key().fingerprint, process.key().spec, "other");
  process.serve(make_tokens(2 * kPageTokens, 7), {}, other);
  process.flush();
  serve_some(process);
  (void)process.store().clear(other);
  process.serve(make_tokens(2 * kPageTokens, 8));
  process.flush();
}

void check_after(MemoryDisk& disk, const std::vector<BlockId>& announced) {
  auto files = disk.file_system();
  Process process(disk.file_system());
  ASSERT_TRUE(process.is_open()) << process.error();
  ASSERT_TRUE(process.wait_for_index());
  for (const BlockId& id : announced) {
    std::string name = process.folder() + "/" + block_file_name(id);
    auto file = files->open(name);
    ASSERT_TRUE(file) << "announced, but not there: " << name;
    EXPECT_TRUE(read_block_head(process.key(), id, **file));
  }
  process.serve(kLonger);  // checks each page
  EXPECT_TRUE(process.flush().complete);
  EXPECT_EQ(process.restore(kLonger).tokens, kLonger.size());
  EXPECT_TRUE(list(*files, "v1/tmp").empty());
}

class StoreFaults : public ::testing::TestWithParam<Code> {};

TEST_P(StoreFaults, AnyOneOperationMayFail) {
  spdlog::set_level(spdlog::level::off);
  for (std::uint64_t n = 0;; ++n) {
    SCOPED_TRACE("operation " + std::to_string(n));
    MemoryDisk disk;
    FailNth fault(n, GetParam(), false);
    std::vector<BlockId> announced;
    {
      Process process(faulty(disk, std::ref(fault)), small_budget());
      if (process.is_open()) {
        serve_much(process);
        process.restore(kLonger);  // checks each page
        // Nothing is evicted or written any more.
        process.close();
        announced = process.cache().durable_blocks();
      }
    }
    disk.power_cut();
    check_after(disk, announced);
    if (!fault.reached() || HasFatalFailure()) {
      EXPECT_GT(n, 150u);
      break;
    }
  }
}

TEST_P(StoreFaults, AllOperationsMayFailFromSomePointOn) {
  spdlog::set_level(spdlog::level::off);
  for (std::uint64_t n = 0;; ++n) {
    SCOPED_TRACE("operation " + std::to_string(n));
    MemoryDisk disk;
    FailNth fault(n, GetParam(), true);
    std::vector<BlockId> announced;
    {
      Process process(faulty(disk, std::ref(fault)));
      if (process.is_open()) {
        serve_some(process);
        process.close();
        announced = process.cache().durable_blocks();
      }
    }
    disk.power_cut(n);
    check_after(disk, announced);
    if (!fault.reached() || HasFatalFailure()) {
      EXPECT_GT(n, 50u);
      break;
    }
  }
}

TEST_P(StoreFaults, AFailedReadIsAMissAndKeepsTheFile) {
  spdlog::set_level(spdlog::level::off);
  MemoryDisk disk;
  std::size_t stored = 0;
  {
    Process process(disk.file_system());
    stored = serve_some(process).size();
  }
  auto files = disk.file_system();
  for (std::uint64_t n = 0;; ++n) {
    SCOPED_TRACE("operation " + std::to_string(n));
    FailNth fault(n, GetParam(), false);
    Process process(faulty(disk, std::ref(fault)));
    if (process.is_open()) {
      process.wait_for_index();
      EXPECT_LE(process.restore(kLonger).tokens, kLonger.size());
      EXPECT_EQ(process.store().stats().corrupt_blocks, 0u);
    }
    EXPECT_EQ(list(*files, process.folder()).size(), stored);
    if (!fault.reached()) {
      break;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Codes,
    StoreFaults,
    ::testing::Values(
        Code::kIo, Code::kNoSpace, Code::kExhausted, Code::kPermission
    ),
    [](const auto& info) {
      switch (info.param) {
        case Code::kIo:
          return "Io";
        case Code::kNoSpace:
          return "NoSpace";
        case Code::kExhausted:
          return "Exhausted";
        default:
          return "Permission";
      }
    }
);

enum class Lie { kFileSync, kDirectorySync, kShortWrite };

class StoreLies : public ::testing::TestWithParam<Lie> {};

/// The n-th such operation claims to have done what it did not.
class LiarNth {
 public:
  LiarNth(MemoryDisk& disk, Lie lie, std::uint64_t n)
      : disk_(disk), files_(disk.file_system()), lie_(lie), n_(n) {}

  std::unique_ptr<FileSystem> file_system() {
    return make_faulty_file_system(
        disk_.file_system(),
        [this](auto operation, auto) -> std::optional<Error> {
          if (is_meant(operation) && lie_ != Lie::kShortWrite) {
            disk_.set_lying_sync(count_ == n_);
          }
          return std::nullopt;
        },
        [this](auto operation, auto name) {
          if (!is_meant(operation)) {
            return;
          }
          if (lie_ == Lie::kShortWrite && count_ == n_) {
            auto file = files_->open_or_create(name);
            ASSERT_TRUE(file);
            ASSERT_TRUE((*file)->truncate((*file)->info()->bytes / 2));
          }
          disk_.set_lying_sync(false);
          ++count_;
        }
    );
  }

  bool reached() const { return count_ > n_; }

 private:
  bool is_meant(std::string_view operation) const {
    switch (lie_) {
      case Lie::kFileSync:
        return operation == "sync";
      case Lie::kDirectorySync:
        return operation == "sync_directory";
      default:
        return operation == "write";
    }
  }

  MemoryDisk& disk_;
  std::unique_ptr<FileSystem> files_;
  Lie lie_;
  std::uint64_t n_;
  std::atomic<std::uint64_t> count_{0};
};

TEST_P(StoreLies, WhatALyingDiskLostIsAMissAndCounted) {
  spdlog::set_level(spdlog::level::off);
  std::size_t lost = 0;
  for (std::uint64_t n = 0;; ++n) {
    SCOPED_TRACE("lie " + std::to_string(n));
    MemoryDisk disk;
    LiarNth liar(disk, GetParam(), n);
    std::vector<BlockId> announced;
    {
      Process process(liar.file_system());
      ASSERT_TRUE(process.is_open());
      announced = serve_some(process);
    }
    disk.power_cut();
    auto files = disk.file_system();
    Process process(disk.file_system());
    ASSERT_TRUE(process.is_open()) << process.error();
    ASSERT_TRUE(process.wait_for_index());
    // Reads all there is, in vain perhaps; each page is checked.
    process.serve(kLonger);
    ASSERT_TRUE(process.flush().complete);
    EXPECT_EQ(process.restore(kLonger).tokens, kLonger.size());
    EXPECT_TRUE(eventually([&] { return list(*files, "v1/tmp").empty(); }));
    // What came back by itself or was written anew is whole.
    for (const BlockId& id : process.cache().durable_blocks()) {
      std::string name = process.folder() + "/" + block_file_name(id);
      auto file = files->open(name);
      ASSERT_TRUE(file);
      EXPECT_TRUE(read_block_head(process.key(), id, **file)) << name;
    }
    EXPECT_EQ(process.cache().durable_blocks().size(), announced.size());
    StoreStats stats = process.store().stats();
    lost += stats.corrupt_blocks;
    if (!liar.reached() || HasFatalFailure()) {
      EXPECT_GT(n, 3u);
      break;
    }
  }
  // A file that was not synced is there, empty; a lost name is just a miss.
  EXPECT_EQ(lost > 0, GetParam() != Lie::kDirectorySync);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds,
    StoreLies,
    ::testing::Values(Lie::kFileSync, Lie::kDirectorySync, Lie::kShortWrite),
    [](const auto& info) {
      switch (info.param) {
        case Lie::kFileSync:
          return "FileSync";
        case Lie::kDirectorySync:
          return "DirectorySync";
        default:
          return "ShortWrite";
      }
    }
);

TEST(StoreFault, AfterALyingSyncNothingWrongIsServed) {
  spdlog::set_level(spdlog::level::off);
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    MemoryDisk disk;
    disk.set_lying_sync(true);
    {
      Process process(disk.file_system());
      serve_some(process);
    }
    disk.power_cut(seed);
    disk.set_lying_sync(false);
    check_after(disk, {});
  }
}

TEST(StoreFault, AFailedSyncIsNotTrustedAgain) {
  // After the first failure later syncs of that file succeed and lose it.
  spdlog::set_level(spdlog::level::off);
  MemoryDisk disk;
  std::atomic<int> syncs{0};
  std::vector<BlockId> announced;
  {
    Process process(faulty(
        disk,
        [&](auto operation, auto name) -> std::optional<Error> {
          bool fails = operation == "sync" && name.starts_with("v1/tmp") &&
                       syncs++ % 2 == 1;
          return fails ? std::optional(Error{Code::kIo, "[test] sync"})
                       : std::nullopt;
        }
    ));
    announced = serve_some(process);
    EXPECT_EQ(announced.size(), 4u);
  }
  disk.power_cut();
  check_after(disk, announced);
}

TEST(StoreFault, AFullDiskStopsWritingAndNothingElse) {
  spdlog::set_level(spdlog::level::off);
  MemoryDisk disk;
  Process process(disk.file_system());
  disk.set_free_space({std::uint64_t{1} << 30, std::uint64_t{1} << 40});
  process.serve(kFirst);
  EXPECT_TRUE(process.flush().complete);
  EXPECT_EQ(process.cache().durable_blocks().size(), 0u);
  StoreStats stats = process.store().stats();
  EXPECT_EQ(stats.write_failures, 3u);
  EXPECT_FALSE(stats.writing);
  EXPECT_NE(stats.last_error.find("free some space"), std::string::npos);
  EXPECT_EQ(process.restore(kFirst).tokens, kFirst.size());
  // With space again, the parents that were given up are written as well.
  disk.set_free_space({std::uint64_t{1} << 40, std::uint64_t{1} << 40});
  process.serve(kLonger);
  EXPECT_TRUE(process.flush().complete);
  EXPECT_TRUE(process.store().stats().writing);
  EXPECT_EQ(process.cache().durable_blocks().size(), 4u);
}

TEST(StoreFault, ACorruptBlockIsReadTwiceRemovedAndComputedAgain) {
  spdlog::set_level(spdlog::level::off);
  MemoryDisk disk;
  auto tokens = make_tokens(4 * kPageTokens, 1);
  {
    Process process(disk.file_system());
    process.serve(tokens);
    ASSERT_TRUE(process.flush().complete);
  }
  auto files = disk.file_system();
  Process process(disk.file_system());
  ASSERT_TRUE(process.wait_for_index());
  auto first = std::span(tokens).first(kPageTokens);
  BlockPtr block = make_block(root_of(process.key()), 0, first);
  auto second = std::span(tokens).subspan(kPageTokens, kPageTokens);
  block = make_block(block->id, kPageTokens, second);
  std::string name = process.folder() + "/" + block_file_name(block->id);
  auto bytes = read_file(*files, name);
  bytes[bytes.size() - 100] ^= std::byte{4};
  write_file(*files, name, bytes);

  EXPECT_EQ(process.restore(tokens).tokens, kPageTokens);
  EXPECT_TRUE(eventually([&] {
    return process.store().stats().corrupt_blocks == 1;
  }));
  EXPECT_FALSE(files->info(name));
  EXPECT_EQ(process.serve(tokens), kPageTokens);
  ASSERT_TRUE(process.flush().complete);
  EXPECT_TRUE(files->info(name));
}

TEST(StoreFault, AReadThatIsCorruptOnceOnlyIsForgiven) {
  MemoryDisk disk;
  auto tokens = make_tokens(kPageTokens, 1);
  {
    Process process(disk.file_system());
    process.serve(tokens);
    ASSERT_TRUE(process.flush().complete);
  }
  auto files = disk.file_system();
  std::string name;
  std::vector<std::byte> good;
  std::atomic<int> reads{-1};
  // Damages the file before the first read of it and mends it later.
  Process process(faulty(
      disk,
      [&](auto operation, auto file) -> std::optional<Error> {
        if (operation == "open" && reads >= 0 && file == name) {
          auto bytes = good;
          bytes.back() ^= std::byte(reads++ == 0 ? 1 : 0);
          write_file(*files, name, bytes);
        }
        return std::nullopt;
      }
  ));
  ASSERT_TRUE(process.wait_for_index());
  name = process.folder() + "/" + list(*files, process.folder()).front();
  good = read_file(*files, name);
  reads = 0;
  EXPECT_EQ(process.restore(tokens).tokens, tokens.size());
  EXPECT_GE(reads, 2);
  EXPECT_EQ(process.store().stats().corrupt_blocks, 0u);
}

TEST(StoreFault, AFlushGivesUpAtItsDeadline) {
  MemoryDisk disk;
  std::mutex gate;
  std::atomic<bool> gated{false};
  Process process(faulty(
      disk,
      [&](auto operation, auto) -> std::optional<Error> {
        if (operation == "sync" && gated) {
          std::lock_guard wait(gate);
        }
        return std::nullopt;
      }
  ));
  {
    std::lock_guard closed(gate);
    gated = true;
    process.serve(kFirst);
    FlushReport report = process.store().flush(
        std::chrono::steady_clock::now() + std::chrono::milliseconds(30)
    );
    EXPECT_FALSE(report.complete);
  }
  EXPECT_TRUE(process.flush().complete);
}

TEST(StoreFault, EveryRestoreIsAnsweredWhenTheStoreCloses) {
  MemoryDisk disk;
  {
    Process process(disk.file_system());
    serve_some(process);
  }
  std::mutex gate;
  std::atomic<bool> gated{false};
  std::atomic<int> answers{0};
  {
    Process process(faulty(
        disk,
        [&](auto operation, auto) -> std::optional<Error> {
          if (operation == "read" && gated) {
            std::lock_guard wait(gate);
          }
          return std::nullopt;
        }
    ));
    ASSERT_TRUE(process.wait_for_index());
    gate.lock();
    gated = true;
    BlockId root = root_of(process.key());
    for (int i = 0; i < 8; ++i) {
      Match match = process.cache().lookup(root, kLonger);
      process.store().restore(
          {.root = root,
           .prompt = kLonger,
           .match = std::move(match),
           .done = [&](Restored) { ++answers; }}
      );
    }
    gate.unlock();
  }
  EXPECT_EQ(answers, 8);
}

TEST(StoreFault, AnUnreadableDirectoryGivesAnError) {
  spdlog::set_level(spdlog::level::off);
  MemoryDisk disk;
  Process process(faulty(disk, [](auto, auto) {
    return std::optional(Error{Code::kIo, "[test] unplugged"});
  }));
  EXPECT_FALSE(process.is_open());
  EXPECT_EQ(process.error(), "[test] unplugged");
}

}  // namespace
}  // namespace afterglow
