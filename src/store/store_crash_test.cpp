#include <iostream>
#include <map>

#include "store/block_io.h"
#include "store/child_process.h"
#include "store/disk_lock.h"
#include "store/manifest.h"
#include "store/testing.h"

namespace afterglow {
namespace {

using namespace testing;

constexpr std::uint64_t kLimitBlocks = 8;

std::unique_ptr<FileSystem> open_files(const std::string& path) {
  auto files = open_posix_file_system(path);
  EXPECT_TRUE(files) << files.error().message;
  return std::move(*files);
}

std::uint64_t limit_bytes() {
  ModelKey key = small_key();
  auto block = make_block(root_of(key), 0, make_tokens(kPageTokens, 1));
  return kLimitBlocks * block_file_bytes(key, *block);
}

/// What must hold the moment after a kill: whole files only, the announced
/// ones among them.
void check_files(
    const std::string& path, const std::set<std::string>& announced
) {
  auto files = open_files(path);
  ModelKey key = small_key();
  PagePool pool(key.layout.page_bytes());
  std::string folder = "v1/" + key.folder() + "/blocks";
  if (!files->info(folder)) {
    EXPECT_TRUE(announced.empty());
    return;
  }
  std::set<std::string> there;
  {
    // Counted before they are linked, and after they are unlinked.
    auto lock = DiskTransaction::begin(*files, [] { return false; });
    ASSERT_TRUE(lock);
    if (lock->state().counted_at_ns != 0) {
      EXPECT_GE(lock->state().used_bytes, block_bytes(*files, folder));
    }
  }
  for (const std::string& name : list(*files, folder)) {
    auto id = parse_block_file_name(name);
    ASSERT_TRUE(id) << name;
    there.insert(id->hex());
    auto file = files->open(folder + "/" + name);
    ASSERT_TRUE(file);
    auto head = read_block_head(key, *id, **file);
    ASSERT_TRUE(head) << head.error().message;
    std::shared_ptr<Page> page = pool.make();
    ASSERT_TRUE(read_block_kv(key, *head, **file, *page));
    EXPECT_TRUE(page_is_right(key.layout, *page, *head->block));
  }
  for (const std::string& id : announced) {
    EXPECT_EQ(there.count(id), 1u) << "announced, but not there: " << id;
  }
  auto manifest = read_manifest(*files);
  EXPECT_TRUE(manifest || manifest.error().code == Code::kNotFound);
}

/// What must hold once a process has opened the directory again.
void check_recovered(const std::string& path) {
  auto files = open_files(path);
  Process process(open_files(path), limit_bytes());
  ASSERT_TRUE(process.is_open()) << process.error();
  ASSERT_TRUE(process.wait_for_index());
  auto tokens = make_tokens(2 * kPageTokens + 30, 1);
  process.serve(tokens);  // checks each page that it reuses
  ASSERT_TRUE(process.flush().complete);
  EXPECT_EQ(process.restore(tokens).tokens, tokens.size());
  EXPECT_EQ(process.store().stats().corrupt_blocks, 0u);
  EXPECT_TRUE(list(*files, "v1/tmp").empty());
  std::uint64_t used = block_bytes(*files, process.folder());
  EXPECT_LE(used, limit_bytes());
  auto lock = DiskTransaction::begin(*files, [] { return false; });
  ASSERT_TRUE(lock);
  EXPECT_EQ(lock->state().used_bytes, used);
}

bool changes_the_disk(const std::string& operation) {
  static const std::set<std::string> kReads = {
      "op open",
      "op read",
      "op info",
      "op file_info",
      "op list",
      "op free_space"};
  return kReads.count(operation.substr(0, operation.rfind(' '))) == 0;
}

/// How often each operation that changes something is done, by
/// "operation,kind".
std::map<std::string, int> trace() {
  TemporaryDirectory directory(TemporaryDirectory::in_memory());
  std::string limit = "limit=" + std::to_string(kLimitBlocks);
  ChildProcess child({directory.path(), "script", limit, "trace=1"});
  EXPECT_EQ(child.wait(), 0) << child.said("wrong");
  std::map<std::string, int> counts;
  for (std::string line : child.lines()) {
    if (line.rfind("op ", 0) == 0 && changes_the_disk(line)) {
      line = line.substr(3);
      line[line.find(' ')] = ',';
      ++counts[line];
    }
  }
  return counts;
}

TEST(StoreCrash, AKillAroundAnyOperationCostsNothingAnnounced) {
  std::map<std::string, int> operations = trace();
  for (const char* expected :
       {"make_directory,blocks",
        "create,temporary",
        "try_lock,temporary",
        "write,temporary",
        "sync,temporary",
        "set_mtime,temporary",
        "open_or_create,lock",
        "try_lock,lock",
        "write,lock",
        "link,temporary",
        "sync_directory,blocks",
        "remove,temporary",
        "remove,block",
        "rename,temporary",
        "sync_directory,v1"}) {
    EXPECT_GT(operations[expected], 0) << expected;
  }
  int runs = 0;
  int kills = 0;
  std::string limit = "limit=" + std::to_string(kLimitBlocks);
  for (const auto& [operation, count] : operations) {
    for (int n = 0; n < count; ++n) {
      for (const char* moment : {"before", "middle", "after"}) {
        if (std::string_view(moment) == "middle" &&
            operation.rfind("write,", 0) != 0) {
          continue;
        }
        std::string kill = std::string("kill=") + moment + "," + operation +
                           "," + std::to_string(n);
        SCOPED_TRACE(kill);
        TemporaryDirectory directory(TemporaryDirectory::in_memory());
        ChildProcess child({directory.path(), "script", limit, kill});
        int status = child.wait();
        EXPECT_TRUE(status == -SIGKILL || status == 0) << status;
        EXPECT_EQ(child.said("wrong"), "");
        ++runs;
        kills += status == -SIGKILL;
        check_files(directory.path(), child.announced());
        check_recovered(directory.path());
        ASSERT_FALSE(HasFailure());
      }
    }
  }
  // How a batch is cut depends on timing, so a few are not reached.
  EXPECT_GT(kills, runs * 9 / 10);
  std::cout << kills << " kills in " << runs << " runs\n";
}

TEST(StoreCrash, TwoHundredKillsUnderLoadCostNothingAnnounced) {
  TemporaryDirectory directory(TemporaryDirectory::in_memory());
  std::mt19937_64 random(20);
  std::string limit = "limit=" + std::to_string(kLimitBlocks);
  std::size_t announced = 0;
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE("kill " + std::to_string(i));
    ChildProcess child(
        {directory.path(),
         "load",
         limit,
         "seed=" + std::to_string(i),
         "clear=" + std::to_string(i % 2)}
    );
    if (random() % 4 != 0) {
      EXPECT_TRUE(child.wait_for("ready", std::chrono::seconds(60)));
    }
    // Nothing more is awaited: this only spreads the moments of death.
    (void)child.wait_for("never", std::chrono::milliseconds(random() % 60));
    child.kill();
    EXPECT_EQ(child.wait(), -SIGKILL);
    EXPECT_EQ(child.said("wrong"), "");
    announced += child.announced().size();
    check_files(directory.path(), child.announced());
    if (i % 10 == 9) {
      check_recovered(directory.path());
    }
    ASSERT_FALSE(HasFailure());
  }
  // Far fewer than when nothing else runs; without any there was no load.
  EXPECT_GT(announced, 20u);
}

}  // namespace
}  // namespace afterglow
