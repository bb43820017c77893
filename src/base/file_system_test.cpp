#include "base/file_system.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/memory_file_system.h"

namespace afterglow {
namespace {

namespace fs = std::filesystem;

std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string read(FileSystem& files, std::string_view name) {
  auto file = files.open(name);
  if (!file) {
    return to_string(file.error().code);
  }
  std::string text(100, '\0');
  auto count = (*file)->read_at(
      0, std::as_writable_bytes(std::span(text.data(), text.size()))
  );
  text.resize(count ? *count : 0);
  return text;
}

enum class Kind { kMemory, kPosix, kPosixByParts };

class AnyFileSystem : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (GetParam() == Kind::kMemory) {
      files_ = disk_.file_system();
      return;
    }
    std::string name = (fs::temp_directory_path() / "files-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
    auto files =
        open_posix_file_system(path_ + "/a/b", GetParam() == Kind::kPosix);
    ASSERT_TRUE(files) << files.error().message;
    files_ = std::move(*files);
  }
  void TearDown() override {
    files_.reset();
    if (!path_.empty()) {
      fs::remove_all(path_);
    }
  }
  void put(std::string_view name, std::string_view text) {
    auto file = files_->open_or_create(name);
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE((*file)->truncate(0));
    ASSERT_TRUE((*file)->write_at(0, bytes(text)));
  }
  bool is_posix() const { return GetParam() != Kind::kMemory; }

  MemoryDisk disk_;
  std::string path_;
  std::unique_ptr<FileSystem> files_;
};

TEST_P(AnyFileSystem, FilesKeepWhatIsWritten) {
  ASSERT_TRUE(files_->make_directory("d"));
  put("d/x", "hello");
  EXPECT_EQ(read(*files_, "d/x"), "hello");
  auto file = files_->open("d/x");
  ASSERT_TRUE(file);
  std::byte out[10];
  EXPECT_EQ(*(*file)->read_at(3, out), 2u);  // fewer at the end
  EXPECT_EQ(*(*file)->read_at(50, out), 0u);
  EXPECT_EQ((*file)->info()->bytes, 5u);
  EXPECT_TRUE((*file)->info()->is_regular);
  EXPECT_TRUE((*file)->set_mtime(1'234'567'890'123'456'789));
  EXPECT_EQ(files_->info("d/x")->mtime_ns, 1'234'567'890'123'456'789);
  EXPECT_TRUE(files_->info("d")->is_directory);
}

TEST_P(AnyFileSystem, CreateLinkAndRenameSayWhatIsThere) {
  ASSERT_TRUE(files_->create("x"));
  EXPECT_EQ(files_->create("x").error().code, Code::kExists);
  EXPECT_EQ(files_->open("y").error().code, Code::kNotFound);
  EXPECT_EQ(files_->open("no/y").error().code, Code::kNotFound);
  put("x", "one");
  ASSERT_TRUE(files_->link("x", "y"));
  EXPECT_EQ(files_->info("x")->inode, files_->info("y")->inode);
  EXPECT_EQ(files_->link("x", "y").error().code, Code::kExists);
  EXPECT_EQ(files_->link("none", "z").error().code, Code::kNotFound);
  put("z", "two");
  ASSERT_TRUE(files_->rename("z", "y"));
  EXPECT_EQ(read(*files_, "y"), "two");
  EXPECT_EQ(read(*files_, "x"), "one");
  ASSERT_TRUE(files_->remove("y"));
  EXPECT_EQ(files_->remove("y").error().code, Code::kNotFound);
  EXPECT_EQ(files_->info("y").error().code, Code::kNotFound);
}

TEST_P(AnyFileSystem, DirectoriesListTheirNames) {
  ASSERT_TRUE(files_->make_directory("d"));
  ASSERT_TRUE(files_->make_directory("d"));
  ASSERT_TRUE(files_->make_directory("d/e"));
  put("d/x", "");
  put("f", "");
  auto names = files_->list("d");
  ASSERT_TRUE(names);
  std::sort(names->begin(), names->end());
  EXPECT_EQ(*names, (std::vector<std::string>{"e", "x"}));
  EXPECT_EQ(files_->list("")->size(), 2u);
  EXPECT_EQ(files_->list("none").error().code, Code::kNotFound);
  EXPECT_FALSE(files_->make_directory("f"));
  EXPECT_TRUE(files_->sync_directory("d"));
  EXPECT_TRUE(files_->sync_directory(""));
}

TEST_P(AnyFileSystem, NamesThatLeadOutAreRefused) {
  ASSERT_TRUE(files_->make_directory("d"));
  for (std::string_view name : std::initializer_list<std::string_view>{
           "..",
           "../x",
           "d/../x",
           "/etc/passwd",
           "d//x",
           "./x",
           "d/.",
           "d/",
           std::string_view("d\0x", 3),
           std::string_view()}) {
    EXPECT_EQ(files_->open(name).error().code, Code::kPermission) << name;
    EXPECT_EQ(files_->create(name).error().code, Code::kPermission) << name;
    EXPECT_EQ(files_->link("d", name).error().code, Code::kPermission);
  }
}

TEST_P(AnyFileSystem, OneHolderOfALockAtATime) {
  auto a = files_->open_or_create("lock");
  auto b = files_->open("lock");
  ASSERT_TRUE(a && b);
  EXPECT_TRUE(*(*a)->try_lock());
  EXPECT_FALSE(*(*b)->try_lock());
  ASSERT_TRUE((*a)->unlock());
  ASSERT_TRUE((*b)->lock());
  EXPECT_FALSE(*(*a)->try_lock());
  b = Error{Code::kInternal, "closed"};
  EXPECT_TRUE(*(*a)->try_lock());
}

TEST_P(AnyFileSystem, SymbolicLinksAndPipesAreRefused) {
  if (!is_posix()) {
    GTEST_SKIP() << "memory has neither";
  }
  std::string root = path_ + "/a/b";
  fs::create_directory(path_ + "/outside");
  put("plain", "x");
  fs::create_symlink(root + "/plain", root + "/link");
  fs::create_directory_symlink(path_ + "/outside", root + "/way");
  ASSERT_EQ(::mkfifo((root + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(files_->open("link").error().code, Code::kPermission);
  EXPECT_EQ(files_->open_or_create("link").error().code, Code::kPermission);
  EXPECT_EQ(files_->create("link").error().code, Code::kExists);
  EXPECT_EQ(files_->create("way/x").error().code, Code::kPermission);
  EXPECT_EQ(files_->list("way").error().code, Code::kPermission);
  EXPECT_EQ(files_->make_directory("way/d").error().code, Code::kPermission);
  EXPECT_EQ(files_->link("plain", "way/x").error().code, Code::kPermission);
  EXPECT_EQ(files_->open("pipe").error().code, Code::kPermission);
  EXPECT_TRUE(fs::is_empty(path_ + "/outside"));
}

TEST_P(AnyFileSystem, WhatIsMadeIsPrivate) {
  if (!is_posix()) {
    GTEST_SKIP() << "memory has no modes";
  }
  ::umask(0);
  put("x", "");
  ASSERT_TRUE(files_->make_directory("d"));
  ::umask(022);
  struct stat status;
  for (auto [name, mode] :
       {std::pair("/a/b/x", 0600),
        std::pair("/a/b/d", 0700),
        std::pair("/a/b", 0700),
        std::pair("/a", 0700)}) {
    ASSERT_EQ(::stat((path_ + name).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, static_cast<mode_t>(mode)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds,
    AnyFileSystem,
    ::testing::Values(Kind::kMemory, Kind::kPosix, Kind::kPosixByParts),
    [](const auto& info) {
      switch (info.param) {
        case Kind::kMemory:
          return "Memory";
        case Kind::kPosix:
          return "Posix";
        default:
          return "PosixByParts";
      }
    }
);

TEST(PosixFileSystem, ADirectoryOfAnotherUserIsRefused) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can give a directory away";
  }
  std::string name = (fs::temp_directory_path() / "files-XXXXXX").string();
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  ASSERT_EQ(::chown(name.c_str(), 12345, 12345), 0);
  auto files = open_posix_file_system(name);
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().code, Code::kPermission);
  EXPECT_NE(files.error().message.find("user id 12345"), std::string::npos);
  fs::remove_all(name);
}

TEST(PosixFileSystem, AFileIsNoDirectory) {
  auto files = open_posix_file_system("/dev/null");
  ASSERT_FALSE(files);
  EXPECT_FALSE(open_posix_file_system(""));
}

TEST(MemoryDisk, APowerCutLosesWhatWasNotSynced) {
  MemoryDisk disk;
  auto files = disk.file_system();
  auto put = [&](std::string_view name, std::string_view text, bool sync) {
    auto file = files->open_or_create(name);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write_at(0, bytes(text)));
    if (sync) {
      ASSERT_TRUE((*file)->sync());
    }
  };
  ASSERT_TRUE(files->make_directory("d"));
  put("d/data and name", "1", true);
  put("d/name only", "2", false);
  ASSERT_TRUE(files->sync_directory("d"));
  ASSERT_TRUE(files->sync_directory(""));
  put("d/data only", "3", true);
  put("d/data and name", "9", false);
  ASSERT_TRUE(files->remove("d/name only"));
  disk.power_cut();
  EXPECT_EQ(read(*files, "d/data and name"), "1");
  EXPECT_EQ(read(*files, "d/name only"), "");
  EXPECT_EQ(read(*files, "d/data only"), to_string(Code::kNotFound));
}

TEST(MemoryDisk, ALyingSyncLosesAll) {
  MemoryDisk disk;
  auto files = disk.file_system();
  disk.set_lying_sync(true);
  auto file = files->create("x");
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->sync());
  ASSERT_TRUE(files->sync_directory(""));
  disk.power_cut();
  EXPECT_EQ(files->open("x").error().code, Code::kNotFound);
}

}  // namespace
}  // namespace afterglow
