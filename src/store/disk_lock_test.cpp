#include "store/disk_lock.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/hash.h"
#include "base/memory_file_system.h"

namespace afterglow {
namespace {

const auto kNeverGiveUp = [] { return false; };

std::unique_ptr<FileSystem> make_files(MemoryDisk& disk) {
  auto files = disk.file_system();
  EXPECT_TRUE(files->make_directory("v1"));
  return files;
}

TEST(DiskLock, StateComesBack) {
  DiskState state{123456789, 42, 1700000000000000000, 20000, 77};
  auto parsed = parse_disk_state(format_disk_state(state));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(*parsed, state);
}

TEST(DiskLock, TheGoldenLineOfFormat2IsWrittenAlike) {
  DiskState state{123456789, 42, 1700000000000000000, 20000, 77};
  std::ifstream in(
      std::string(AFTERGLOW_SOURCE_DIR) + "/src/store/testdata/lock2"
  );
  ASSERT_TRUE(in);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  EXPECT_EQ(format_disk_state(state), text);
  EXPECT_EQ(text.size(), 170u);
}

TEST(DiskLock, EveryFlippedOrMissingByteIsDamage) {
  std::string text = format_disk_state({123456789, 42, 17, 20000, 5});
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string flipped = text;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    EXPECT_FALSE(parse_disk_state(flipped)) << i;
    EXPECT_FALSE(parse_disk_state(text.substr(0, i))) << i;
  }
  EXPECT_FALSE(parse_disk_state(text + " "));
}

TEST(DiskLock, ALineOfFormat1IsDamage) {
  std::string line =
      "afterglow-lock-1 used 00000000000000000007 epoch 00000000000000000005 "
      "counted 00000000000000000006 ";
  EXPECT_EQ(parse_disk_state(line).error().code, Code::kCorrupt);
  MemoryDisk disk;
  auto files = make_files(disk);
  auto file = files->open_or_create("v1/lock");
  ASSERT_TRUE(file);
  char sum[17];
  std::snprintf(
      sum,
      sizeof sum,
      "%016llx",
      static_cast<unsigned long long>(
          xxh3_64(std::as_bytes(std::span(line.data(), line.size())))
      )
  );
  line += std::string(sum) + "\n";
  ASSERT_TRUE(
      (*file)->write_at(0, std::as_bytes(std::span(line.data(), line.size())))
  );
  auto lock = DiskTransaction::begin(*files, kNeverGiveUp);
  ASSERT_TRUE(lock);
  EXPECT_EQ(lock->state().counted_at_ns, 0);
  EXPECT_NE(lock->state().epoch, 5u);
}

TEST(DiskLock, WhatOneUpdatesTheNextReads) {
  MemoryDisk disk;
  auto files = make_files(disk);
  DiskState state{77, 5, 6, 7, 8};
  {
    auto lock = DiskTransaction::begin(*files, kNeverGiveUp);
    ASSERT_TRUE(lock);
    EXPECT_EQ(lock->state().used_bytes, 0u);
    EXPECT_EQ(lock->state().counted_at_ns, 0);
    ASSERT_TRUE(lock->update(state));
  }
  auto lock = DiskTransaction::begin(*files, kNeverGiveUp);
  ASSERT_TRUE(lock);
  EXPECT_EQ(lock->state(), state);
}

TEST(DiskLock, DamageGivesANewEpoch) {
  MemoryDisk disk;
  auto files = make_files(disk);
  auto first = DiskTransaction::begin(*files, kNeverGiveUp);
  ASSERT_TRUE(first);
  std::uint64_t epoch = first->state().epoch;
  first = Error{Code::kInternal, "released"};
  auto second = DiskTransaction::begin(*files, kNeverGiveUp);
  ASSERT_TRUE(second);
  EXPECT_NE(second->state().epoch, epoch);
}

TEST(DiskLock, TheSecondWaitsAndMayGiveUp) {
  MemoryDisk disk;
  auto files = make_files(disk);
  auto others = disk.file_system();
  auto lock = DiskTransaction::begin(*files, kNeverGiveUp);
  ASSERT_TRUE(lock);
  int asked = 0;
  auto second = DiskTransaction::begin(*others, [&] { return ++asked == 3; });
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kCancelled);
}

TEST(DiskLock, ALockFileThatWasReplacedIsNotTheLock) {
  MemoryDisk disk;
  auto files = make_files(disk);
  auto others = disk.file_system();
  auto old = files->open_or_create("v1/lock");
  ASSERT_TRUE(old);
  ASSERT_TRUE((*old)->try_lock());
  bool replaced = false;
  auto lock = DiskTransaction::begin(*others, [&] {
    if (!replaced) {
      replaced = true;
      EXPECT_TRUE(files->remove("v1/lock"));
      EXPECT_TRUE((*old)->unlock());
    }
    return false;
  });
  ASSERT_TRUE(lock);
  // It locked the file under the name: another finds it taken.
  auto third = DiskTransaction::begin(*files, [] { return true; });
  EXPECT_FALSE(third);
}

}  // namespace
}  // namespace afterglow
