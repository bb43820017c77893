#include "cli/chat/last_chat.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "base/faulty_file_system.h"
#include "base/memory_file_system.h"

namespace afterglow {
namespace {

Conversation saying(const std::string& answer) {
  return {"m", std::nullopt, {{"user", "a"}, {"assistant", answer}}};
}

/// With the folders that a store makes.
class CacheDisk : public MemoryDisk {
 public:
  CacheDisk() {
    const auto files = file_system();
    for (const char* folder : {"v1", "v1/tmp"}) {
      EXPECT_TRUE(files->make_directory(folder).ok());
    }
    for (const char* folder : {"v1", ""}) {
      EXPECT_TRUE(files->sync_directory(folder).ok());
    }
  }
};

Conversation read_back(MemoryDisk& disk) {
  auto found = LastChat(disk.file_system()).read();
  if (!found.ok() || !*found) {
    ADD_FAILURE() << (found.ok() ? "nothing there" : found.error().message);
    return {};
  }
  return (*found)->conversation;
}

TEST(LastChats, AreNotThereAtFirst) {
  CacheDisk disk;
  auto found = LastChat(disk.file_system()).read();
  ASSERT_TRUE(found.ok());
  EXPECT_FALSE(*found);
}

TEST(LastChats, AreTheOneWrittenLast) {
  CacheDisk disk;
  LastChat chat(disk.file_system());
  ASSERT_TRUE(chat.write(saying("a long answer")).ok());
  ASSERT_TRUE(chat.write(saying("b")).ok());
  EXPECT_EQ(read_back(disk), saying("b"));
  EXPECT_EQ(disk.file_system()->list("chat")->size(), 1u);
}

TEST(LastChats, OutliveAPowerCut) {
  CacheDisk disk;
  ASSERT_TRUE(LastChat(disk.file_system()).write(saying("a")).ok());
  disk.power_cut();
  EXPECT_EQ(read_back(disk), saying("a"));
}

TEST(LastChats, StayWhenTheNextCannotBeWritten) {
  CacheDisk disk;
  ASSERT_TRUE(LastChat(disk.file_system()).write(saying("a")).ok());
  int failures = 0;
  for (int n = 0;; ++n) {
    int operation = 0;
    bool failed = false;
    auto hook = [&](auto, auto) -> std::optional<Error> {
      if (operation++ != n) return std::nullopt;
      failed = true;
      return Error{Code::kIo, "[test] a fault"};
    };
    LastChat chat(make_faulty_file_system(disk.file_system(), hook));
    const Status written = chat.write(saying("b"));
    if (!failed) break;
    failures += written.ok() ? 0 : 1;
    disk.power_cut();
    const Conversation now = read_back(disk);
    EXPECT_EQ(now, saying(written.ok() ? "b" : now.messages[1].content)) << n;
    EXPECT_TRUE(now == saying("a") || now == saying("b")) << n;
    ASSERT_TRUE(LastChat(disk.file_system()).write(saying("a")).ok());
  }
  EXPECT_GT(failures, 5);
}

TEST(LastChats, ThatAreDamagedSayWhere) {
  CacheDisk disk;
  LastChat chat(disk.file_system());
  ASSERT_TRUE(chat.write(saying("a")).ok());
  auto file = disk.file_system()->open_or_create("chat/last.json");
  ASSERT_TRUE((*file)->truncate(20).ok());
  auto found = chat.read();
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, Code::kCorrupt);
  EXPECT_EQ(
      found.error().message,
      "[chat.continue] chat/last.json: it is no JSON object"
  );
}

}  // namespace
}  // namespace afterglow
