#include "store/child_process.h"
#include "store/disk_lock.h"
#include "store/testing.h"

namespace afterglow {
namespace {

using namespace testing;

constexpr std::uint64_t kLimitBlocks = 12;

class StoreProcesses : public ::testing::TestWithParam<int> {};

TEST_P(StoreProcesses, ShareADirectoryUnderEvictionAndClear) {
  TemporaryDirectory directory(TemporaryDirectory::in_memory());
  ModelKey key = small_key();
  std::uint64_t limit =
      kLimitBlocks *
      block_file_bytes(
          key, *make_block(root_of(key), 0, make_tokens(kPageTokens, 1))
      );
  std::string folder = "v1/" + key.folder() + "/blocks";
  std::vector<std::unique_ptr<ChildProcess>> children;
  for (int i = 0; i < GetParam(); ++i) {
    children.push_back(std::make_unique<ChildProcess>(std::vector<std::string>{
        directory.path(),
        "load",
        "limit=" + std::to_string(kLimitBlocks),
        "seed=" + std::to_string(i),
        "rounds=" + std::to_string(1200 / GetParam()),
        "clear=" + std::to_string(i == 0 ? 1 : 0)}));
  }
  auto files = open_posix_file_system(directory.path());
  ASSERT_TRUE(files);
  // Looks in whenever it gets the lock, while all run.
  int looks = 0;
  auto end = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  while (!children[0]->wait_for("done", std::chrono::milliseconds(3))) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    if (children[0]->said("wrong") != "" || !(*files)->info(folder)) {
      ASSERT_EQ(children[0]->said("wrong"), "");
      continue;
    }
    auto lock = DiskTransaction::begin(**files, [&] {
      for (auto& child : children) {
        child->drain();
      }
      return false;
    });
    ASSERT_TRUE(lock);
    std::uint64_t used = block_bytes(**files, folder);
    EXPECT_LE(used, limit);
    if (lock->state().counted_at_ns != 0) {
      EXPECT_EQ(lock->state().used_bytes, used);
    }
    ++looks;
  }
  EXPECT_GT(looks, 3);
  for (auto& child : children) {
    while (!child->is_closed()) {
      child->wait_for("never", std::chrono::milliseconds(1));
      for (auto& other : children) {
        other->drain();
      }
      ASSERT_LT(std::chrono::steady_clock::now(), end);
    }
    EXPECT_EQ(child->wait(), 0);
    EXPECT_EQ(child->said("wrong"), "");
    // What any of them computed the others hit.
    EXPECT_GT(std::stoull("0" + child->said("reused")), 10 * kPageTokens);
  }
  Process process(std::move(*open_posix_file_system(directory.path())), limit);
  ASSERT_TRUE(process.wait_for_index());
  process.serve(make_tokens(3 * kPageTokens, 5));
  ASSERT_TRUE(process.flush().complete);
  EXPECT_LE(block_bytes(**files, folder), limit);
  EXPECT_EQ(
      process.store().stats().disk_used_bytes, block_bytes(**files, folder)
  );
  EXPECT_EQ(process.store().stats().corrupt_blocks, 0u);
  EXPECT_TRUE(list(**files, "v1/tmp").empty());
}

INSTANTIATE_TEST_SUITE_P(
    Count,
    StoreProcesses,
    ::testing::Values(2, 4),
    [](const auto& info) { return std::to_string(info.param); }
);

TEST(StoreTwoProcesses, OnePrefillsAndTheOthersHitWhileAllRun) {
  TemporaryDirectory directory(TemporaryDirectory::in_memory());
  ChildProcess first({directory.path(), "load", "seed=1", "limit=64"});
  ASSERT_TRUE(first.wait_for("ready", std::chrono::seconds(60)));
  auto files = open_posix_file_system(directory.path());
  ASSERT_TRUE(files);
  Process process(std::move(*files));
  auto shared = make_tokens(2 * kPageTokens, 1000);
  EXPECT_TRUE(eventually([&] {
    return process.restore(shared).tokens == shared.size();
  }));
  EXPECT_EQ(first.said("wrong"), "");
}

}  // namespace
}  // namespace afterglow
