#include "store/cache_directory.h"

#include <atomic>
#include <map>
#include <thread>

#include "base/faulty_file_system.h"
#include "base/memory_file_system.h"
#include "store/cache_directory_verify.h"
#include "store/clock.h"
#include "store/disk_files.h"
#include "store/names.h"
#include "store/temporary.h"
#include "store/testing.h"

namespace afterglow {
namespace {

using namespace testing;

constexpr std::int64_t kHour = 3600ll * 1'000'000'000;

CacheDirectory open(MemoryDisk& disk) {
  auto directory = CacheDirectory::open(disk.file_system(), "the cache");
  EXPECT_TRUE(directory) << (directory ? "" : directory.error().message);
  return std::move(*directory);
}

CacheContents read(CacheDirectory& directory) {
  auto contents = directory.read();
  EXPECT_TRUE(contents) << (contents ? "" : contents.error().message);
  return std::move(*contents);
}

VerifyReport verify(CacheDirectory& directory, bool repair = false) {
  auto report = verify_cache(directory, {repair, {}});
  EXPECT_TRUE(report) << (report ? "" : report.error().message);
  return std::move(*report);
}

std::string path_of(const std::string& folder, const BlockId& id) {
  return names::blocks(folder) + "/" + block_file_name(id);
}

/// The lock's count is what the files take.
void expect_count_is_right(CacheDirectory& directory) {
  auto lock = directory.begin();
  ASSERT_TRUE(lock);
  EXPECT_EQ(lock->state().used_bytes, *count_block_bytes(directory.files()));
}

/// The block ids of a prompt, in order.
std::vector<BlockId> ids_of(
    const ModelKey& key, const std::vector<Token>& tokens
) {
  std::vector<BlockId> ids;
  BlockId parent = root_of(key);
  for (std::size_t at = 0; at < tokens.size(); at += kPageTokens) {
    std::size_t n = std::min(kPageTokens, tokens.size() - at);
    parent = block_id(parent, at, std::span(tokens).subspan(at, n));
    ids.push_back(parent);
  }
  return ids;
}

/// Fills the directory as a server would and ends.
void fill(
    MemoryDisk& disk,
    const std::vector<Token>& tokens,
    std::vector<Boundary> boundaries = {},
    std::uint8_t model = 1
) {
  Process process(disk.file_system(), ProcessOptions{.model = model});
  process.serve(tokens, std::move(boundaries));
  ASSERT_TRUE(process.flush().complete);
}

/// Dates the prompt's entry and the use of its last block that long ago.
void age(
    CacheDirectory& directory,
    const ModelKey& key,
    const std::vector<Token>& prompt,
    std::int64_t ns
) {
  FileSystem& files = directory.files();
  BlockId last = ids_of(key, prompt).back();
  auto manifest = read_manifest(files);
  ASSERT_TRUE(manifest);
  for (ManifestEntry& entry : manifest->entries) {
    if (entry.record.path.back() == last) {
      entry.record.last_use_ns = unix_now_ns() - ns;
    }
  }
  ASSERT_TRUE(write_manifest(files, *manifest));
  auto file = files.open(path_of(key.folder(), last));
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->set_mtime(unix_now_ns() - ns));
}

void flip(FileSystem& files, const std::string& name, std::size_t at) {
  auto bytes = read_file(files, name);
  ASSERT_LT(at, bytes.size());
  bytes[at] ^= std::byte{1};
  write_file(files, name, bytes);
}

TEST(CacheDirectoryOpen, WhatIsNoCacheIsRefusedByName) {
  MemoryDisk disk;
  auto none = CacheDirectory::open(disk.file_system(), "the place");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kInvalidArgument);
  EXPECT_NE(none.error().message.find("the place"), std::string::npos);
  ASSERT_TRUE(disk.file_system()->make_directory("v2"));
  auto later = CacheDirectory::open(disk.file_system(), "the place");
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().code, Code::kUnsupported);
}

TEST(CacheDirectoryOpen, NothingIsMadeWhereNothingIs) {
  TemporaryDirectory place;
  std::string missing = place.path() + "/missing";
  auto opened = CacheDirectory::open(missing);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(missing));
}

TEST(CacheDirectoryList, EntriesOfAllModelsWithWhatTheyShare) {
  MemoryDisk disk;
  auto shared = make_tokens(2 * kPageTokens, 1);
  auto a = join(shared, make_tokens(kPageTokens, 2));
  auto b = join(shared, make_tokens(40, 3));
  fill(disk, a);
  fill(disk, b);
  fill(disk, shared, {}, 2);
  CacheDirectory directory = open(disk);
  CacheContents contents = read(directory);
  ASSERT_EQ(contents.models.size(), 2u);
  EXPECT_EQ(contents.models[0]->name, "test model");
  EXPECT_EQ(contents.blocks(), 6u);
  EXPECT_EQ(contents.bytes(), *count_block_bytes(directory.files()));
  EXPECT_TRUE(contents.orphans.empty());
  ASSERT_EQ(contents.entries.size(), 3u);
  // The latest use first.
  EXPECT_EQ(contents.entries[0].model->folder, small_key(2).folder());
  const StoredEntry& second = contents.entries[1];
  EXPECT_EQ(second.record.length, b.size());
  EXPECT_EQ(second.record.path, ids_of(small_key(), b));
  EXPECT_EQ(second.record.root, root_of(small_key()));
  EXPECT_TRUE(second.listed);
  EXPECT_EQ(contents.entries[2].record.length, a.size());
  auto tail = second.model->find(second.record.path.back());
  EXPECT_EQ(second.own_bytes, tail->bytes);
  EXPECT_GT(second.bytes, second.own_bytes);
}

TEST(CacheDirectoryList, BlocksThatNoEntryCoversAreEntriesByTheirFiles) {
  MemoryDisk disk;
  auto tokens = make_tokens(2 * kPageTokens + 9, 1);
  fill(disk, tokens);
  CacheDirectory directory = open(disk);
  for (std::size_t length : {256u, 512u, 521u}) {
    auto part = std::vector<Token>(tokens.begin(), tokens.begin() + length);
    age(directory, small_key(), part, kHour);
  }
  ASSERT_TRUE(directory.files().remove("v1/manifest.json"));
  CacheContents contents = read(directory);
  ASSERT_EQ(contents.entries.size(), 1u);
  EXPECT_EQ(contents.entries[0].record.length, tokens.size());
  EXPECT_EQ(contents.entries[0].record.type, EntryType::kAssistant);
  EXPECT_FALSE(contents.entries[0].listed);
  std::int64_t age = unix_now_ns() - contents.entries[0].record.last_use_ns;
  EXPECT_GE(age, kHour);
  EXPECT_LT(age, 2 * kHour);
  EXPECT_TRUE(contents.manifest_error);
}

TEST(CacheDirectoryList, AnEntryEndsWhereABlockIsMissing) {
  MemoryDisk disk;
  auto tokens = make_tokens(4 * kPageTokens, 1);
  fill(disk, tokens);
  CacheDirectory directory = open(disk);
  auto ids = ids_of(small_key(), tokens);
  ASSERT_TRUE(directory.files().remove(path_of(small_key().folder(), ids[2])));
  CacheContents contents = read(directory);
  ASSERT_EQ(contents.entries.size(), 1u);
  EXPECT_EQ(contents.entries[0].record.length, 2 * kPageTokens);
  EXPECT_EQ(contents.orphans, std::vector<BlockId>{ids[3]});
}

TEST(CacheDirectoryList, AnEntryOnItsWayToDiskLeavesNoOther) {
  MemoryDisk disk;
  auto tokens = make_tokens(kPageTokens + 100, 1);
  Process process(
      disk.file_system(), ProcessOptions{.tail_delay = std::chrono::hours(1)}
  );
  // The index was just saved, so that it is saved next in a second.
  process.serve(make_tokens(9, 2));
  ASSERT_TRUE(process.flush().complete);
  process.serve(tokens, {{EntryType::kSystem, tokens.size()}});
  CacheDirectory directory = open(disk);
  auto listed = [&] {
    std::map<std::size_t, EntryType> types;
    for (const StoredEntry& entry : read(directory).entries) {
      if (entry.listed) {
        types[entry.record.length] = entry.record.type;
      }
    }
    return types;
  };
  // The full block is there and listed, its tail waits.
  ASSERT_TRUE(eventually([&] { return listed().count(kPageTokens) > 0; }));
  ASSERT_TRUE(process.flush().complete);
  EXPECT_EQ(
      listed(),
      (std::map<std::size_t, EntryType>{
          {9, EntryType::kAssistant}, {tokens.size(), EntryType::kSystem}})
  );
}

TEST(CacheDirectoryVerify, AWholeCacheHasNoDamage) {
  MemoryDisk disk;
  fill(disk, make_tokens(3 * kPageTokens + 70, 1));
  fill(disk, make_tokens(100, 2), {}, 2);
  CacheDirectory directory = open(disk);
  VerifyReport report = verify(directory);
  EXPECT_FALSE(report.is_damaged());
  EXPECT_EQ(report.blocks, 5u);
  EXPECT_EQ(report.bytes, *count_block_bytes(directory.files()));
  EXPECT_EQ(report.counted_bytes, report.bytes);
  EXPECT_EQ(report.lock_bytes, report.bytes);
  EXPECT_TRUE(report.lost.empty());
  EXPECT_TRUE(report.orphans.empty());
  EXPECT_EQ(report.dead_temporaries, 0u);
}

TEST(CacheDirectoryVerify, DamageIsNamedWithItsReasonAndWhatItCosts) {
  struct Case {
    std::size_t offset;  // from the front; from the end when it is too large
    std::string reason;
  };
  std::size_t head = kKvAlignment;
  for (const Case& damage : std::vector<Case>{
           {40, "sum"},
           {head - kTokenBytes + 4, "tokens"},
           {head + 100, "layers.0.k"},
           {~std::size_t{0}, "layers.1.v"}}) {
    MemoryDisk disk;
    auto tokens = make_tokens(3 * kPageTokens, 1);
    fill(disk, tokens);
    CacheDirectory directory = open(disk);
    auto ids = ids_of(small_key(), tokens);
    std::string name = path_of(small_key().folder(), ids[1]);
    std::size_t bytes = read_file(directory.files(), name).size();
    flip(directory.files(), name, std::min(damage.offset, bytes - 1));
    VerifyReport report = verify(directory);
    EXPECT_TRUE(report.is_damaged());
    ASSERT_EQ(report.corrupt.size(), 1u) << damage.reason;
    EXPECT_EQ(report.corrupt[0].id, ids[1]);
    const std::string& message = report.corrupt[0].error.message;
    EXPECT_TRUE(message.starts_with(damage.reason)) << message;
    ASSERT_EQ(report.orphans.size(), 1u);
    EXPECT_EQ(report.orphans[0].id, ids[2]);
    ASSERT_EQ(report.lost.size(), 1u);
    EXPECT_EQ(report.lost[0].kept, kPageTokens);
    EXPECT_EQ(report.lost[0].record.length, tokens.size());
    EXPECT_EQ(report.lost[0].block, ids[1]);
    EXPECT_FALSE(report.lost[0].is_missing);
    EXPECT_EQ(report.blocks, 2u);
    // Looking changes nothing.
    EXPECT_TRUE(directory.files().info(name));
  }
}

TEST(CacheDirectoryVerify, ATruncatedBlockAndAWrongNameAreDamage) {
  MemoryDisk disk;
  auto tokens = make_tokens(2 * kPageTokens, 1);
  fill(disk, tokens);
  CacheDirectory directory = open(disk);
  FileSystem& files = directory.files();
  auto ids = ids_of(small_key(), tokens);
  std::string folder = small_key().folder();
  auto bytes = read_file(files, path_of(folder, ids[0]));
  write_file(files, path_of(folder, ids[1]), std::span(bytes));
  write_file(
      files, path_of(folder, ids[0]), std::span(bytes).first(bytes.size() - 1)
  );
  std::map<BlockId, std::string> reasons;
  for (const BadBlock& bad : verify(directory).corrupt) {
    reasons[bad.id] = bad.error.message;
  }
  ASSERT_EQ(reasons.size(), 2u);
  EXPECT_TRUE(reasons[ids[0]].starts_with("file: ")) << reasons[ids[0]];
  EXPECT_TRUE(reasons[ids[1]].starts_with("id: ")) << reasons[ids[1]];
}

TEST(CacheDirectoryVerify, AnotherModelsBlockInTheFolderIsDamage) {
  MemoryDisk disk;
  auto tokens = make_tokens(kPageTokens, 1);
  fill(disk, tokens);
  fill(disk, tokens, {}, 2);
  CacheDirectory directory = open(disk);
  FileSystem& files = directory.files();
  BlockId id = ids_of(small_key(2), tokens)[0];
  auto bytes = read_file(files, path_of(small_key(2).folder(), id));
  write_file(files, path_of(small_key(1).folder(), id), bytes);
  VerifyReport report = verify(directory);
  ASSERT_EQ(report.corrupt.size(), 1u);
  EXPECT_EQ(report.corrupt[0].folder, small_key(1).folder());
}

TEST(CacheDirectoryVerify, AFileThatCannotBeReadIsKept) {
  MemoryDisk disk;
  auto tokens = make_tokens(2 * kPageTokens, 1);
  fill(disk, tokens);
  auto fault = [](auto operation, std::string_view name) {
    bool is_block = name.find("/blocks/") != name.npos;
    return operation == "read" && is_block
               ? std::optional(Error{Code::kIo, "[files.read] test: I/O error"})
               : std::nullopt;
  };
  auto directory = CacheDirectory::open(
      make_faulty_file_system(disk.file_system(), fault), "the cache"
  );
  ASSERT_TRUE(directory);
  VerifyReport report = verify(*directory, true);
  EXPECT_TRUE(report.is_damaged());
  EXPECT_TRUE(report.corrupt.empty());
  EXPECT_EQ(report.unreadable.size(), 2u);
  EXPECT_EQ(report.removed_blocks, 0u);
  CacheDirectory healthy = open(disk);
  EXPECT_EQ(read(healthy).blocks(), 2u);
}

TEST(CacheDirectoryVerify, RepairRemovesDamageAndWhatTheDeadLeft) {
  MemoryDisk disk;
  auto tokens = make_tokens(3 * kPageTokens, 1);
  fill(disk, tokens);
  CacheDirectory directory = open(disk);
  FileSystem& files = directory.files();
  auto ids = ids_of(small_key(), tokens);
  std::string name = path_of(small_key().folder(), ids[1]);
  flip(files, name, kKvAlignment + 7);
  write_file(files, "v1/tmp/123-456-7", std::array<std::byte, 9>{});
  auto living = Temporary::create(files);
  ASSERT_TRUE(living);
  {
    auto lock = directory.begin();
    ASSERT_TRUE(lock);
    ASSERT_TRUE(lock->adjust_used(12345));
  }
  VerifyReport before = verify(directory);
  EXPECT_EQ(before.dead_temporaries, 1u);
  EXPECT_EQ(before.lock_bytes, before.counted_bytes + 12345);
  std::uint64_t epoch = directory.begin()->state().epoch;

  VerifyReport report = verify(directory, true);
  EXPECT_TRUE(report.is_damaged());
  EXPECT_EQ(report.removed_blocks, 1u);
  EXPECT_EQ(report.removed_temporaries, 1u);
  EXPECT_TRUE(report.failures.empty());
  EXPECT_FALSE(files.info(name));
  EXPECT_TRUE(files.info(living->name()));
  EXPECT_GT(directory.begin()->state().epoch, epoch);
  expect_count_is_right(directory);

  VerifyReport after = verify(directory);
  EXPECT_FALSE(after.is_damaged());
  EXPECT_TRUE(after.lost.empty());  // the manifest is cut
  EXPECT_EQ(after.orphans.size(), 1u);
  // The block is computed again and its child serves again.
  Process process(disk.file_system());
  ASSERT_TRUE(process.wait_for_index());
  EXPECT_EQ(process.serve(tokens), kPageTokens);
  ASSERT_TRUE(process.flush().complete);
  EXPECT_TRUE(verify(directory).orphans.empty());
}

TEST(CacheDirectoryVerify, ADamagedManifestIsSaidAndReplaced) {
  MemoryDisk disk;
  fill(disk, make_tokens(kPageTokens, 1));
  CacheDirectory directory = open(disk);
  flip(directory.files(), "v1/manifest.json", 0);
  EXPECT_TRUE(verify(directory).is_damaged());
  verify(directory, true);
  EXPECT_FALSE(verify(directory).is_damaged());
  EXPECT_EQ(read(directory).entries.size(), 1u);
}

/// Four prompts of two blocks, and the system entry's own.
class CacheDirectoryPrune : public ::testing::Test {
 protected:
  void SetUp() override {
    system_ = make_tokens(2 * kPageTokens, 10);
    fill(disk_, system_, {{EntryType::kSystem, 2 * kPageTokens}});
    for (std::uint64_t i = 0; i < 3; ++i) {
      prompts_.push_back(make_tokens(2 * kPageTokens, i));
      fill(disk_, prompts_.back());
    }
    directory_ = std::make_unique<CacheDirectory>(open(disk_));
    block_bytes_ = read(*directory_).bytes() / 8;
    // The system prompt is the oldest of all.
    age(*directory_, key_, system_, 100 * kHour);
    for (std::size_t i = 0; i < prompts_.size(); ++i) {
      auto tens = static_cast<std::int64_t>(prompts_.size() - i);
      age(*directory_, key_, prompts_[i], tens * 10 * kHour);
    }
  }

  Removal prune(const PruneRule& rule, bool dry_run = false) {
    auto removal = directory_->prune(rule, dry_run);
    EXPECT_TRUE(removal) << (removal ? "" : removal.error().message);
    return std::move(*removal);
  }

  void pin(const std::vector<Token>& tokens) {
    CacheContents contents = read(*directory_);
    for (const StoredEntry& entry : contents.entries) {
      if (entry.record.path == ids_of(key_, tokens)) {
        auto changed = directory_->set_pinned(entry, true);
        EXPECT_TRUE(changed && *changed);
      }
    }
  }

  /// How many blocks of the prompt are on disk, from the first on.
  std::size_t left(const std::vector<Token>& tokens) {
    std::size_t count = 0;
    for (const BlockId& id : ids_of(key_, tokens)) {
      if (!directory_->files().info(path_of(key_.folder(), id))) break;
      ++count;
    }
    return count;
  }

  std::vector<std::size_t> all_left() {
    return {
        left(system_), left(prompts_[0]), left(prompts_[1]), left(prompts_[2])};
  }

  using Lefts = std::vector<std::size_t>;

  ModelKey key_ = small_key();
  MemoryDisk disk_;
  std::vector<Token> system_;
  std::vector<std::vector<Token>> prompts_;  // the oldest first
  std::unique_ptr<CacheDirectory> directory_;
  std::uint64_t block_bytes_ = 0;
};

TEST_F(CacheDirectoryPrune, ToABudgetByTheRuleOfEviction) {
  Removal removal = prune({{}, {}, 5 * block_bytes_});
  EXPECT_EQ(removal.blocks, 3u);
  EXPECT_EQ(removal.bytes, 3 * block_bytes_);
  EXPECT_EQ(removal.left_bytes, 5 * block_bytes_);
  // The system prompt is older, but assistants go first; children go before
  // parents.
  EXPECT_EQ(all_left(), (Lefts{2, 0, 1, 2}));
  ASSERT_EQ(removal.entries.size(), 2u);
  expect_count_is_right(*directory_);
  CacheContents contents = read(*directory_);
  ASSERT_EQ(contents.entries.size(), 3u);
  EXPECT_FALSE(verify(*directory_).is_damaged());
}

TEST_F(CacheDirectoryPrune, WhatIsPinnedStays) {
  pin(prompts_[0]);
  Removal removal = prune({{}, {}, 0});
  EXPECT_EQ(removal.left_bytes, 2 * block_bytes_);
  EXPECT_EQ(all_left(), (Lefts{0, 2, 0, 0}));
}

TEST_F(CacheDirectoryPrune, WhatWasNotUsedForATime) {
  Removal removal = prune({{}, 15 * kHour, {}});
  EXPECT_EQ(all_left(), (Lefts{0, 0, 0, 2}));
  EXPECT_EQ(removal.entries.size(), 3u);
  EXPECT_EQ(removal.blocks, 6u);
  EXPECT_TRUE(prune({{}, 15 * kHour, {}}).entries.empty());
}

TEST_F(CacheDirectoryPrune, WhoseTimeToLiveHasPassed) {
  auto manifest = read_manifest(directory_->files());
  ASSERT_TRUE(manifest);
  for (ManifestEntry& entry : manifest->entries) {
    entry.record.ttl_ns = 25 * kHour;
  }
  ASSERT_TRUE(write_manifest(directory_->files(), *manifest));
  prune({{}, {}, std::uint64_t{1} << 40});
  EXPECT_EQ(all_left(), (Lefts{0, 0, 2, 2}));
}

TEST_F(CacheDirectoryPrune, OneModelOnly) {
  auto tokens = make_tokens(kPageTokens, 77);
  fill(disk_, tokens, {}, 2);
  Removal removal = prune({{small_key(2).folder()}, 0, {}});
  EXPECT_EQ(removal.blocks, 1u);
  EXPECT_EQ(removal.left_bytes, 0u);
  EXPECT_EQ(all_left(), (Lefts{2, 2, 2, 2}));
  removal = prune({{key_.folder()}, 0, {}});
  EXPECT_EQ(all_left(), (Lefts{0, 0, 0, 0}));
}

TEST_F(CacheDirectoryPrune, OrphansGoWithWhatWasNotUsed) {
  FileSystem& files = directory_->files();
  auto ids = ids_of(key_, prompts_[0]);
  ASSERT_TRUE(files.remove(path_of(key_.folder(), ids[0])));
  prune({{}, 15 * kHour, {}});
  EXPECT_FALSE(files.info(path_of(key_.folder(), ids[1])));
}

TEST_F(CacheDirectoryPrune, ADryRunTellsTheSameAndChangesNothing) {
  PruneRule rule{{}, {}, 5 * block_bytes_};
  auto manifest = read_file(directory_->files(), "v1/manifest.json");
  Removal dry = prune(rule, true);
  EXPECT_EQ(all_left(), (Lefts{2, 2, 2, 2}));
  EXPECT_EQ(read_file(directory_->files(), "v1/manifest.json"), manifest);
  Removal real = prune(rule);
  EXPECT_EQ(dry.blocks, real.blocks);
  EXPECT_EQ(dry.bytes, real.bytes);
  EXPECT_EQ(dry.left_bytes, real.left_bytes);
  EXPECT_EQ(dry.entries.size(), real.entries.size());
}

TEST_F(CacheDirectoryPrune, AFileThatCannotBeRemovedIsTold) {
  auto fault = [](auto operation,
                  std::string_view name) -> std::optional<Error> {
    if (operation == "remove" && name.find("/blocks/") != name.npos) {
      return Error{Code::kPermission, "[files.remove] test: read-only"};
    }
    return std::nullopt;
  };
  auto stubborn = CacheDirectory::open(
      make_faulty_file_system(disk_.file_system(), fault), "the cache"
  );
  ASSERT_TRUE(stubborn);
  auto removal = stubborn->prune({{}, {}, 5 * block_bytes_}, false);
  ASSERT_TRUE(removal);
  EXPECT_EQ(removal->blocks, 0u);
  EXPECT_EQ(removal->failures.size(), 3u);
  EXPECT_EQ(all_left(), (Lefts{2, 2, 2, 2}));
  expect_count_is_right(*directory_);
}

TEST(CacheDirectoryClear, TakesPinnedDamagedAndOrphanedBlocksToo) {
  MemoryDisk disk;
  auto tokens = make_tokens(3 * kPageTokens, 1);
  fill(disk, tokens);
  fill(disk, make_tokens(kPageTokens, 2), {}, 2);
  CacheDirectory directory = open(disk);
  FileSystem& files = directory.files();
  {
    CacheContents contents = read(directory);
    for (const StoredEntry& entry : contents.entries) {
      ASSERT_TRUE(directory.set_pinned(entry, true));
    }
  }
  auto ids = ids_of(small_key(), tokens);
  flip(files, path_of(small_key().folder(), ids[1]), 50);
  auto removal = directory.clear({small_key().folder()});
  ASSERT_TRUE(removal);
  EXPECT_EQ(removal->blocks, 3u);
  CacheContents contents = read(directory);
  EXPECT_EQ(contents.blocks(), 1u);
  ASSERT_EQ(contents.entries.size(), 1u);
  EXPECT_TRUE(contents.entries[0].record.pinned);
  expect_count_is_right(directory);
  removal = directory.clear({});
  ASSERT_TRUE(removal);
  EXPECT_EQ(removal->entries.size(), 1u);
  EXPECT_EQ(read(directory).blocks(), 0u);
  EXPECT_EQ(directory.begin()->state().used_bytes, 0u);
}

TEST(CacheDirectoryClear, ARunningServerNoticesAndGoesOn) {
  MemoryDisk disk;
  Process process(disk.file_system());
  auto tokens = make_tokens(3 * kPageTokens, 1);
  process.serve(tokens);
  ASSERT_TRUE(process.flush().complete);
  CacheDirectory directory = open(disk);
  ASSERT_TRUE(directory.clear({}));
  // What it has in memory it still serves, and it writes new blocks.
  EXPECT_EQ(process.restore(tokens).tokens, tokens.size());
  process.serve(make_tokens(kPageTokens, 2));
  ASSERT_TRUE(process.flush().complete);
  EXPECT_EQ(process.cache().durable_blocks().size(), 1u);
  EXPECT_EQ(read(directory).blocks(), 1u);
  EXPECT_EQ(read(directory).entries.size(), 1u);
  expect_count_is_right(directory);
}

TEST(CacheDirectoryPin, IsTakenOverByARunningServerBothWays) {
  MemoryDisk disk;
  Process process(disk.file_system());
  auto tokens = make_tokens(kPageTokens + 20, 1);
  process.serve(tokens);
  ASSERT_TRUE(process.flush().complete);
  CacheDirectory directory = open(disk);
  auto is_pinned = [](const std::vector<EntryRecord>& entries) {
    for (const EntryRecord& entry : entries) {
      if (entry.path.size() == 2) {
        return entry.pinned;
      }
    }
    ADD_FAILURE() << "the entry is gone";
    return false;
  };
  auto on_disk = [&] {
    std::vector<EntryRecord> records;
    for (const StoredEntry& entry : read(directory).entries) {
      records.push_back(entry.record);
    }
    return records;
  };
  for (bool pinned : {true, false}) {
    CacheContents contents = read(directory);
    const StoredEntry& entry = *std::find_if(
        contents.entries.begin(),
        contents.entries.end(),
        [](const StoredEntry& entry) { return entry.record.path.size() == 2; }
    );
    auto changed = directory.set_pinned(entry, pinned);
    ASSERT_TRUE(changed) << changed.error().message;
    EXPECT_TRUE(*changed);
    EXPECT_EQ(is_pinned(on_disk()), pinned);
    // A use by the server after the decision does not undo it.
    EXPECT_EQ(process.restore(tokens).tokens, tokens.size());
    EXPECT_TRUE(eventually([&] {
      return is_pinned(process.cache().entries()) == pinned;
    }));
    process.serve(make_tokens(30, 2));
    ASSERT_TRUE(process.flush().complete);
    EXPECT_EQ(is_pinned(on_disk()), pinned);
    changed = directory.set_pinned(entry, pinned);
    EXPECT_TRUE(changed && !*changed);
  }
}

TEST(CacheDirectoryPin, AnEntryWhoseBlocksAreGoneIsNotPinned) {
  MemoryDisk disk;
  fill(disk, make_tokens(kPageTokens, 1));
  CacheDirectory directory = open(disk);
  CacheContents contents = read(directory);
  ASSERT_TRUE(directory.clear({}));
  auto changed = directory.set_pinned(contents.entries[0], true);
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code, Code::kNotFound);
}

TEST(CacheDirectorySharing, ToolsAtWorkBesideABusyServer) {
  MemoryDisk disk;
  std::uint64_t limit = 12 * 32768;
  Process process(disk.file_system(), limit);
  process.serve(make_tokens(kPageTokens, 0));
  ASSERT_TRUE(process.flush().complete);
  std::atomic<bool> done{false};
  std::thread tools([&] {
    CacheDirectory directory = open(disk);
    for (std::uint64_t i = 0; !done; ++i) {
      switch (i % 4) {
        case 0:
          EXPECT_TRUE(directory.prune({{}, {}, limit / 2}, false));
          break;
        case 1:
          EXPECT_TRUE(verify_cache(directory, {true, {}})->corrupt.empty());
          break;
        case 2:
          EXPECT_TRUE(directory.clear({}));
          break;
        default:
          for (const StoredEntry& entry : read(directory).entries) {
            // Its blocks may go in between: an error, never a crash.
            (void)directory.set_pinned(entry, i % 8 < 4);
          }
      }
    }
  });
  std::mt19937_64 random(5);
  auto shared = make_tokens(kPageTokens, 1);
  for (int i = 0; i < 60; ++i) {
    auto own = make_tokens(100 + random() % 500, random() % 10);
    process.serve(join(shared, own));  // checks what it restores
    if (random() % 4 == 0) {
      process.cache().shrink_ram(~std::uint64_t{0});
    }
  }
  done = true;
  tools.join();
  process.flush();
  CacheDirectory directory = open(disk);
  expect_count_is_right(directory);
  EXPECT_FALSE(verify(directory).is_damaged());
  EXPECT_EQ(process.store().stats().corrupt_blocks, 0u);
  EXPECT_LE(read(directory).bytes(), limit);
}

}  // namespace
}  // namespace afterglow
