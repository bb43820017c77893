#include "base/memory_size.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

namespace afterglow {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

/// A folder in place of the root, with files of the given texts.
class ControlGroups : public testing::Test {
 protected:
  ControlGroups() {
    std::string pattern =
        (fs::temp_directory_path() / "groups-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
  }
  ~ControlGroups() override { fs::remove_all(root_); }

  void write(const fs::path& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::uint64_t limit() const { return control_group_memory(root_); }

 private:
  fs::path root_;
};

TEST_F(ControlGroups, TheLeastLimitOfAGroupAndThoseAboveCounts) {
  write("proc/self/cgroup", "0::/a.slice/b.service\n");
  EXPECT_EQ(limit(), kNone);
  write("sys/fs/cgroup/a.slice/b.service/memory.max", "max\n");
  EXPECT_EQ(limit(), kNone);
  write("sys/fs/cgroup/a.slice/memory.max", "3000000\n");
  EXPECT_EQ(limit(), 3000000U);
  write("sys/fs/cgroup/a.slice/b.service/memory.max", "2000000\n");
  EXPECT_EQ(limit(), 2000000U);
  write("sys/fs/cgroup/a.slice/other.service/memory.max", "1\n");
  EXPECT_EQ(limit(), 2000000U);
}

TEST_F(ControlGroups, AContainerFindsItsLimitAtTheTop) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", "5000000\n");
  EXPECT_EQ(limit(), 5000000U);
}

TEST_F(ControlGroups, Version1HasOneOfMemory) {
  write(
      "proc/self/cgroup",
      "12:cpu,cpuacct:/c\n11:memory:/docker/c\n1:name=systemd:/c\n0::/c\n"
  );
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/cpu,cpuacct/c/memory.limit_in_bytes", "1\n");
  EXPECT_EQ(limit(), 9223372036854771712U);
  write("sys/fs/cgroup/memory/docker/c/memory.limit_in_bytes", "7000000\n");
  EXPECT_EQ(limit(), 7000000U);
}

TEST_F(ControlGroups, WhatIsNoNumberIsNoLimit) {
  write("proc/self/cgroup", "nonsense\n0::/a\n");
  for (const char* text : {"", "\n", "12x\n", "-1\n", "99999999999999999999"}) {
    write("sys/fs/cgroup/a/memory.max", text);
    EXPECT_EQ(limit(), kNone) << text;
  }
}

TEST_F(ControlGroups, WithoutThemThereIsNoLimit) {
  EXPECT_EQ(limit(), kNone);
}

TEST(UsableMemory, IsSomeOfTheMachines) {
  EXPECT_GT(usable_memory(), 0U);
  EXPECT_LE(usable_memory(), physical_memory());
  EXPECT_LE(usable_memory(), control_group_memory());
}

}  // namespace
}  // namespace afterglow
