#include <atomic>
#include <mutex>

#include "base/faulty_file_system.h"
#include "base/memory_file_system.h"
#include "store/disk_lock.h"
#include "store/temporary.h"
#include "store/testing.h"

// What another process does at the worst moment, done from inside the faulty
// file system's hook.

namespace afterglow {
namespace {

using namespace testing;

/// Calls act() once, right before the first operation that matches after
/// arm().
class Interruption {
 public:
  Interruption(std::string operation, std::string name)
      : operation_(std::move(operation)), name_(std::move(name)) {}

  void arm(std::function<void()> act) {
    std::lock_guard guard(mutex_);
    act_ = std::move(act);
  }
  bool is_over() {
    std::lock_guard guard(mutex_);
    return !act_;
  }

  std::optional<Error> operator()(
      std::string_view operation, std::string_view name
  ) {
    if (operation != operation_ || name.find(name_) == name.npos) {
      return std::nullopt;
    }
    std::function<void()> act;
    {
      std::lock_guard guard(mutex_);
      act.swap(act_);
    }
    if (act) {
      act();
    }
    return std::nullopt;
  }

 private:
  std::string operation_;
  std::string name_;
  std::mutex mutex_;
  std::function<void()> act_;
};

std::unique_ptr<FileSystem> interrupted(MemoryDisk& disk, Interruption& by) {
  return make_faulty_file_system(disk.file_system(), std::ref(by));
}

void expect_beliefs_hold(FileSystem& files, Process& process) {
  for (const BlockId& id : process.cache().durable_blocks()) {
    EXPECT_TRUE(files.info(process.folder() + "/" + block_file_name(id)));
  }
}

class StoreRace : public ::testing::Test {
 protected:
  /// Another process that removes all blocks.
  void clear_by_other() {
    Process other(disk_.file_system());
    ASSERT_TRUE(other.wait_for_index());
    ASSERT_TRUE(other.store().clear({}));
  }
  std::size_t files_of(const Process& process) {
    return list(*files_, process.folder()).size();
  }

  MemoryDisk disk_;
  std::unique_ptr<FileSystem> files_ = disk_.file_system();
  const std::vector<Token> parent_ = make_tokens(kPageTokens, 1);
  const std::vector<Token> child_ = join(parent_, make_tokens(kPageTokens, 2));
};

TEST_F(StoreRace, TheParentIsEvictedBeforeItsChildIsLinked) {
  Interruption lock("try_lock", "v1/lock");
  Process process(interrupted(disk_, lock));
  process.serve(parent_);
  ASSERT_TRUE(process.flush().complete);
  lock.arm([&] { clear_by_other(); });
  process.serve(child_);
  ASSERT_TRUE(process.flush().complete);
  ASSERT_TRUE(lock.is_over());
  // The parent was in RAM and is written again, before the child.
  EXPECT_EQ(files_of(process), 2u);
  EXPECT_EQ(process.cache().durable_blocks().size(), 2u);
  expect_beliefs_hold(*files_, process);
  Process later(disk_.file_system());
  ASSERT_TRUE(later.wait_for_index());
  EXPECT_EQ(later.restore(child_).tokens, child_.size());
}

TEST_F(StoreRace, AChildWhoseParentKeepsVanishingIsGivenUp) {
  spdlog::set_level(spdlog::level::off);
  std::string parent_file;
  std::atomic<bool> vanishes{false};
  std::atomic<int> times{0};
  Process process(make_faulty_file_system(
      disk_.file_system(),
      [&](auto operation, auto name) -> std::optional<Error> {
        if (vanishes && operation == "info" && name == parent_file) {
          times += files_->remove(parent_file).ok();
        }
        return std::nullopt;
      }
  ));
  BlockPtr parent = make_block(root_of(process.key()), 0, parent_);
  parent_file = process.folder() + "/" + block_file_name(parent->id);
  process.serve(parent_);
  ASSERT_TRUE(process.flush().complete);
  vanishes = true;
  process.serve(child_);
  EXPECT_TRUE(process.flush().complete);
  vanishes = false;
  // Written again a few times, and then the child stays in RAM only.
  EXPECT_GE(times, 2);
  EXPECT_LE(times, 5);
  BlockPtr child = make_block(
      parent->id, kPageTokens, std::span(child_).subspan(kPageTokens)
  );
  EXPECT_FALSE(files_->info(process.folder() + "/" + block_file_name(child->id))
  );
  EXPECT_FALSE(process.cache().is_durable(child->id));
  EXPECT_EQ(process.restore(child_).tokens, child_.size());
}

TEST_F(StoreRace, AFileFoundToBeThereGoesBeforeItIsAnnounced) {
  Process writer(disk_.file_system());
  writer.serve(child_);
  ASSERT_TRUE(writer.flush().complete);
  Interruption lock("try_lock", "v1/lock");
  Process process(interrupted(disk_, lock));
  ASSERT_TRUE(process.flush().complete);
  process.serve(child_);
  ASSERT_TRUE(process.flush().complete);
  lock.arm([&] { clear_by_other(); });
  for (const BlockId& id : process.cache().durable_blocks()) {
    ASSERT_TRUE(process.cache().requeue(id));
  }
  ASSERT_TRUE(process.flush().complete);
  EXPECT_TRUE(lock.is_over());
  EXPECT_EQ(files_of(process), 2u);
  expect_beliefs_hold(*files_, process);
}

TEST_F(StoreRace, AFlushKnowsWhatOthersRemovedThoughItWritesNothing) {
  Process process(disk_.file_system());
  process.serve(child_);
  ASSERT_TRUE(process.flush().complete);
  clear_by_other();
  ASSERT_TRUE(process.flush().complete);
  EXPECT_TRUE(process.cache().durable_blocks().empty());
}

TEST_F(StoreRace, AFileIsRemovedBetweenLookingAndOpening) {
  {
    Process writer(disk_.file_system());
    writer.serve(parent_);
    ASSERT_TRUE(writer.flush().complete);
  }
  Interruption open("open", ".safetensors");
  Process process(interrupted(disk_, open));
  ASSERT_TRUE(process.wait_for_index());
  open.arm([&] { clear_by_other(); });
  EXPECT_EQ(process.restore(parent_).tokens, 0u);
  EXPECT_TRUE(open.is_over());
  EXPECT_EQ(process.store().stats().read_errors, 0u);
  // Nothing is poisoned by it.
  EXPECT_EQ(process.serve(parent_), 0u);
  ASSERT_TRUE(process.flush().complete);
  EXPECT_EQ(process.restore(parent_).tokens, parent_.size());
  expect_beliefs_hold(*files_, process);
}

TEST_F(StoreRace, AFileIsRemovedWhileItIsRead) {
  auto one = parent_;
  {
    Process writer(disk_.file_system());
    writer.serve(one);
    ASSERT_TRUE(writer.flush().complete);
  }
  Interruption read("read", ".safetensors");
  Process process(interrupted(disk_, read));
  ASSERT_TRUE(process.wait_for_index());
  read.arm([&] { clear_by_other(); });
  EXPECT_EQ(process.restore(one).tokens, one.size());
  EXPECT_TRUE(read.is_over());
  EXPECT_EQ(files_of(process), 0u);
}

TEST_F(StoreRace, ACorruptFileThatAnotherProcessReplacedIsNotRemoved) {
  Process writer(disk_.file_system());
  writer.serve(parent_);
  ASSERT_TRUE(writer.flush().complete);
  Interruption lock("try_lock", "v1/lock");
  Process process(interrupted(disk_, lock));
  ASSERT_TRUE(process.flush().complete);
  std::string name =
      process.folder() + "/" + list(*files_, process.folder()).front();
  auto good = read_file(*files_, name);
  auto bytes = good;
  bytes.back() ^= std::byte{1};
  write_file(*files_, name, bytes);
  lock.arm([&] { write_file(*files_, name, good); });
  EXPECT_EQ(process.restore(parent_).tokens, 0u);
  EXPECT_TRUE(eventually([&] { return lock.is_over(); }));
  ASSERT_TRUE(process.flush().complete);
  EXPECT_TRUE(files_->info(name));
  EXPECT_EQ(process.store().stats().corrupt_blocks, 0u);
  EXPECT_EQ(process.restore(parent_).tokens, parent_.size());
}

TEST_F(StoreRace, ATailIsSupersededByAnotherProcess) {
  auto tail = join(parent_, make_tokens(20, 3));
  Process a(disk_.file_system());
  a.serve(tail);
  ASSERT_TRUE(a.flush().complete);
  Process b(disk_.file_system());
  ASSERT_TRUE(b.wait_for_index());
  auto longer = join(tail, make_tokens(20, 4));
  b.serve(longer);
  ASSERT_TRUE(b.flush().complete);
  EXPECT_EQ(files_of(b), 2u);
  // a believes in its tail until it looks at the epoch.
  a.serve(make_tokens(10, 5));
  ASSERT_TRUE(a.flush().complete);
  expect_beliefs_hold(*files_, a);
  EXPECT_EQ(a.restore(tail).tokens, tail.size());
}

TEST_F(StoreRace, ATemporaryIsRemovedBeforeItsWriterLocksIt) {
  Interruption lock("try_lock", "v1/tmp/");
  Process process(interrupted(disk_, lock));
  ASSERT_TRUE(process.flush().complete);
  lock.arm([&] { EXPECT_EQ(*remove_dead_temporaries(*files_), 1u); });
  process.serve(parent_);
  FlushReport report = process.flush();
  EXPECT_TRUE(report.complete);
  EXPECT_TRUE(lock.is_over());
  EXPECT_EQ(process.store().stats().write_failures, 0u);
  EXPECT_EQ(files_of(process), 1u);
}

TEST_F(StoreRace, TheLockFileIsRemovedWhileItIsTaken) {
  Interruption lock("try_lock", "v1/lock");
  Process process(interrupted(disk_, lock));
  ASSERT_TRUE(process.flush().complete);
  lock.arm([&] { EXPECT_TRUE(files_->remove("v1/lock")); });
  process.serve(child_);
  ASSERT_TRUE(process.flush().complete);
  EXPECT_TRUE(lock.is_over());
  auto now = DiskTransaction::begin(*files_, [] { return false; });
  ASSERT_TRUE(now);
  // Counted anew, since nothing was known.
  EXPECT_EQ(now->state().used_bytes, block_bytes(*files_, process.folder()));
}

TEST(StoreRaceOnDisk, TheDirectoryIsRemovedWhileRunning) {
  spdlog::set_level(spdlog::level::off);
  TemporaryDirectory directory;
  auto files = open_posix_file_system(directory.path());
  ASSERT_TRUE(files);
  Process process(std::move(*files));
  auto tokens = make_tokens(2 * kPageTokens + 9, 1);
  process.serve(tokens);
  ASSERT_TRUE(process.flush().complete);
  std::filesystem::remove_all(directory.path() + "/v1");
  // Requests go on, and what they seal is durable again in the end.
  auto longer = join(tokens, make_tokens(kPageTokens, 2));
  EXPECT_EQ(process.serve(longer), tokens.size());
  EXPECT_TRUE(eventually([&] {
    process.serve(longer);
    for (const BlockId& id : process.cache().durable_blocks()) {
      std::string file =
          directory.path() + "/" + process.folder() + "/" + block_file_name(id);
      if (!std::filesystem::exists(file)) {
        process.cache().requeue(id);
      }
    }
    return process.flush().complete;
  }));
  auto again = open_posix_file_system(directory.path());
  ASSERT_TRUE(again);
  Process later(std::move(*again));
  ASSERT_TRUE(later.wait_for_index());
  EXPECT_EQ(later.restore(longer).tokens, longer.size());
}

}  // namespace
}  // namespace afterglow
