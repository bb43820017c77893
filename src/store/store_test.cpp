#include "store/store.h"

#include <sys/stat.h>

#include "base/memory_file_system.h"
#include "store/testing.h"

namespace afterglow {
namespace {

using namespace testing;
namespace fs = std::filesystem;

std::unique_ptr<FileSystem> posix(const TemporaryDirectory& directory) {
  auto files = open_posix_file_system(directory.path());
  EXPECT_TRUE(files.ok());
  return std::move(*files);
}

std::vector<fs::path> files_below(const fs::path& directory) {
  std::vector<fs::path> found;
  for (const auto& item : fs::recursive_directory_iterator(directory)) {
    if (item.is_regular_file()) {
      found.push_back(item.path());
    }
  }
  return found;
}

TEST(Store, RestartServesFromDiskWhatWasSealed) {
  TemporaryDirectory directory;
  auto tokens = make_tokens(3 * kPageTokens + 70, 1);
  {
    Process process(posix(directory));
    EXPECT_EQ(process.serve(tokens), 0u);
    FlushReport report = process.flush();
    EXPECT_TRUE(report.complete);
    EXPECT_EQ(report.failed_blocks, 0u);
    EXPECT_EQ(process.cache().stats().dirty_blocks, 0u);
    EXPECT_EQ(process.store().stats().written_blocks, 4u);
  }
  Process process(posix(directory));
  ASSERT_TRUE(process.wait_for_index());
  EXPECT_EQ(process.store().stats().indexed_blocks, 4u);
  Restored restored = process.restore(join(tokens, make_tokens(5, 2)));
  EXPECT_EQ(restored.tokens, tokens.size());
  EXPECT_EQ(restored.disk_tokens, tokens.size());
  EXPECT_EQ(process.store().stats().read_blocks, 4u);
  // The second time they are in RAM.
  EXPECT_EQ(process.restore(tokens).disk_tokens, 0u);
}

TEST(Store, UnindexedBlocksAreFoundByName) {
  MemoryDisk disk;
  auto tokens = make_tokens(4 * kPageTokens + 9, 1);
  Process reader(disk.file_system());
  ASSERT_TRUE(reader.wait_for_index());
  {
    Process writer(disk.file_system());
    writer.serve(tokens);
    ASSERT_TRUE(writer.flush().complete);
  }
  // The reader has not looked at the directory since.
  EXPECT_GE(reader.restore(tokens).tokens, 4 * kPageTokens);
}

TEST(Store, DirectoryAndFilesArePrivate) {
  TemporaryDirectory directory;
  Process process(posix(directory));
  process.serve(make_tokens(300, 1));
  ASSERT_TRUE(process.flush().complete);
  std::size_t count = 0;
  for (const auto& item : fs::recursive_directory_iterator(directory.path())) {
    auto mode = item.status().permissions() & fs::perms::mask;
    EXPECT_EQ(
        mode,
        item.is_directory() ? fs::perms::owner_all
                            : fs::perms::owner_read | fs::perms::owner_write
    ) << item.path();
    ++count;
  }
  EXPECT_GE(count, 9u);
}

TEST(Store, NoTemporaryIsLeft) {
  TemporaryDirectory directory;
  {
    Process process(posix(directory));
    process.serve(make_tokens(900, 1));
    ASSERT_TRUE(process.flush().complete);
    EXPECT_TRUE(fs::is_empty(directory.path() + "/v1/tmp"));
  }
  // One of a dead writer goes, one that is being written stays.
  auto files = posix(directory);
  ASSERT_TRUE(files->create("v1/tmp/dead"));
  auto alive = files->create("v1/tmp/alive");
  ASSERT_TRUE(alive);
  ASSERT_TRUE((*alive)->try_lock());
  Process process(posix(directory));
  process.serve(make_tokens(300, 2));
  ASSERT_TRUE(process.flush().complete);
  EXPECT_FALSE(fs::exists(directory.path() + "/v1/tmp/dead"));
  EXPECT_TRUE(fs::exists(directory.path() + "/v1/tmp/alive"));
}

TEST(Store, OrderTypesAndPinsSurviveARestart) {
  MemoryDisk disk;
  auto system = make_tokens(kPageTokens, 1);
  auto first = join(system, make_tokens(400, 2));
  auto second = join(system, make_tokens(400, 3));
  std::vector<EntryRecord> before;
  {
    Process process(disk.file_system());
    process.serve(second, {{EntryType::kSystem, system.size()}});
    process.serve(first, {{EntryType::kSystem, system.size()}});
    BlockId end = process.restore(second).path.back().block->id;
    process.cache().set_pinned(end, second.size(), true);
    ASSERT_TRUE(process.flush().complete);
    before = process.cache().entries();
  }
  Process process(disk.file_system());
  ASSERT_TRUE(process.wait_for_index());
  auto after = process.cache().entries();
  ASSERT_EQ(after.size(), before.size());
  for (std::size_t i = 0; i < after.size(); ++i) {
    EXPECT_EQ(after[i].path, before[i].path);
    EXPECT_EQ(after[i].length, before[i].length);
    EXPECT_EQ(after[i].type, before[i].type);
    EXPECT_EQ(after[i].pinned, before[i].pinned);
    EXPECT_GE(after[i].last_use_ns, before[i].last_use_ns);
  }
}

TEST(Store, AHitAfterTheLastManifestSurvivesAKill) {
  MemoryDisk disk;
  auto files = disk.file_system();
  auto first = make_tokens(kPageTokens, 1);
  auto second = make_tokens(kPageTokens, 2);
  std::vector<std::byte> manifest;
  {
    Process process(disk.file_system());
    process.serve(first);
    process.serve(second);
    ASSERT_TRUE(process.flush().complete);
    manifest = read_file(*files, "v1/manifest.json");
    std::string name =
        process.folder() + "/" +
        block_file_name(make_block(root_of(process.key()), 0, first)->id);
    std::int64_t before = files->info(name)->mtime_ns;
    process.restore(first);
    EXPECT_TRUE(eventually([&] { return files->info(name)->mtime_ns > before; })
    );
  }
  write_file(*files, "v1/manifest.json", manifest);
  Process process(disk.file_system());
  ASSERT_TRUE(process.wait_for_index());
  auto entries = process.cache().entries();
  ASSERT_EQ(entries.size(), 2u);
  BlockPtr used = make_block(root_of(process.key()), 0, first);
  EXPECT_EQ(entries.back().path.front(), used->id);
}

TEST(Store, ADamagedManifestCostsNoBlock) {
  MemoryDisk disk;
  auto tokens = make_tokens(700, 1);
  for (const char* text : {"", "{", "[]", "{\"version\":2,\"entries\":[]}"}) {
    {
      Process process(disk.file_system());
      process.serve(tokens);
      ASSERT_TRUE(process.flush().complete || *text == '{');
    }
    std::string_view bytes = text;
    write_file(
        *disk.file_system(),
        "v1/manifest.json",
        std::as_bytes(std::span(bytes.data(), bytes.size()))
    );
    Process process(disk.file_system());
    ASSERT_TRUE(process.wait_for_index());
    EXPECT_EQ(process.restore(tokens).tokens, tokens.size()) << text;
  }
}

TEST(Store, ASupersededTailIsUnlinked) {
  MemoryDisk disk;
  Process process(disk.file_system());
  auto tokens = make_tokens(kPageTokens + 20, 1);
  process.serve(tokens);
  ASSERT_TRUE(process.flush().complete);
  auto files = disk.file_system();
  EXPECT_EQ(list(*files, process.folder()).size(), 2u);
  process.serve(join(tokens, make_tokens(30, 2)));
  ASSERT_TRUE(process.flush().complete);
  // The first block and the longer tail.
  EXPECT_TRUE(eventually([&] {
    return list(*files, process.folder()).size() == 2 &&
           process.store().stats().disk_used_bytes ==
               block_bytes(*files, process.folder());
  }));
}

TEST(Store, AnotherModelsBlocksAreKeptAndNotServed) {
  MemoryDisk disk;
  auto tokens = make_tokens(700, 1);
  {
    Process other(disk.file_system(), {.model = 2});
    other.serve(tokens);
    ASSERT_TRUE(other.flush().complete);
  }
  {
    Process process(disk.file_system());
    ASSERT_TRUE(process.wait_for_index());
    EXPECT_EQ(process.serve(tokens), 0u);
    ASSERT_TRUE(process.flush().complete);
  }
  Process other(disk.file_system(), {.model = 2});
  ASSERT_TRUE(other.wait_for_index());
  EXPECT_EQ(other.restore(tokens).tokens, tokens.size());
}

TEST(Store, ABlockOfAnotherModelInOurFolderIsSkippedAndKept) {
  MemoryDisk disk;
  auto tokens = make_tokens(kPageTokens, 1);
  std::string theirs;
  std::string name;
  {
    Process other(disk.file_system(), {.model = 2});
    other.serve(tokens);
    ASSERT_TRUE(other.flush().complete);
    name = list(*disk.file_system(), other.folder()).front();
    theirs = other.folder() + "/" + name;
  }
  std::string ours = Process(disk.file_system()).folder() + "/" + name;
  ASSERT_TRUE(disk.file_system()->link(theirs, ours));
  Process process(disk.file_system());
  ASSERT_TRUE(process.wait_for_index());
  EXPECT_EQ(process.store().stats().indexed_blocks, 0u);
  EXPECT_EQ(process.store().stats().corrupt_blocks, 0u);
  EXPECT_TRUE(disk.file_system()->info(ours));
}

TEST(Store, ASymbolicLinkInPlaceOfABlockIsRefused) {
  TemporaryDirectory directory;
  TemporaryDirectory elsewhere;
  auto tokens = make_tokens(2 * kPageTokens, 1);
  fs::path moved;
  {
    Process process(posix(directory));
    process.serve(tokens);
    ASSERT_TRUE(process.flush().complete);
  }
  for (const fs::path& file : files_below(directory.path())) {
    if (file.extension() == ".safetensors") {
      moved = fs::path(elsewhere.path()) / file.filename();
      fs::rename(file, moved);
      fs::create_symlink(moved, file);
    }
  }
  Process process(posix(directory));
  ASSERT_TRUE(process.wait_for_index());
  EXPECT_EQ(process.restore(tokens).tokens, 0u);
  process.serve(tokens);
  process.flush();
  // Some may have failed before the flush, so its report would not count them.
  EXPECT_EQ(process.store().stats().write_failures, 2u);
  EXPECT_EQ(process.store().stats().corrupt_blocks, 0u);
  EXPECT_TRUE(fs::exists(moved));
}

TEST(Store, RestoreStopsAtTheFirstBlockThatIsMissing) {
  MemoryDisk disk;
  auto tokens = make_tokens(5 * kPageTokens, 1);
  {
    Process process(disk.file_system());
    process.serve(tokens);
    ASSERT_TRUE(process.flush().complete);
  }
  Process process(disk.file_system());
  ASSERT_TRUE(process.wait_for_index());
  BlockId parent = root_of(process.key());
  for (std::size_t i = 0; i < 3; ++i) {
    auto part = std::span(tokens).subspan(i * kPageTokens, kPageTokens);
    parent = make_block(parent, i * kPageTokens, part)->id;
  }
  ASSERT_TRUE(disk.file_system()->remove(
      process.folder() + "/" + block_file_name(parent)
  ));
  EXPECT_EQ(process.restore(tokens).tokens, 2 * kPageTokens);
  // Computed again, the orphans behind it are of use again.
  process.serve(
      std::vector<Token>(tokens.begin(), tokens.begin() + 3 * kPageTokens)
  );
  EXPECT_EQ(process.restore(tokens).tokens, tokens.size());
}

TEST(Store, AnOpenFailsWhenOthersMayWriteToTheDirectory) {
  TemporaryDirectory directory;
  ::chmod(directory.path().c_str(), 0777);
  auto files = open_posix_file_system(directory.path());
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().code, Code::kPermission);
  EXPECT_NE(files.error().message.find("chmod 700"), std::string::npos);
}

}  // namespace
}  // namespace afterglow
