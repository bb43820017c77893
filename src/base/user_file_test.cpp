#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/file_system.h"

namespace afterglow {
namespace {

namespace fs = std::filesystem;

class UserFile : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(::testing::TempDir()) /
                 ("user_file_" + std::to_string(::getpid()));
    fs::create_directories(directory_);
    // Where other users may write, as in /tmp.
    fs::permissions(directory_, fs::perms::all);
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string path(const std::string& name) const {
    return (directory_ / name).string();
  }
  std::string content(const std::string& name) const {
    std::ifstream in(directory_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::size_t files() const {
    auto all = fs::directory_iterator(directory_);
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

  fs::path directory_;
};

Status write_text(File& file, const std::string& text) {
  return file.write_at(0, std::as_bytes(std::span(text.data(), text.size())));
}

TEST_F(UserFile, IsReplacedAsAWholeAndPrivate) {
  std::ofstream(path("f")) << "a longer old content";
  fs::permissions(path("f"), fs::perms::all);
  ASSERT_TRUE(replace_user_file(path("f"), [](File& file) {
    return write_text(file, "new");
  }));
  EXPECT_EQ(content("f"), "new");
  struct stat status;
  ASSERT_EQ(::stat(path("f").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  EXPECT_EQ(files(), 1u);
}

TEST_F(UserFile, AFailedWriteLeavesTheOldFileAndNothingElse) {
  std::ofstream(path("f")) << "old";
  Status failed = replace_user_file(path("f"), [](File& file) -> Status {
    EXPECT_TRUE(write_text(file, "half"));
    return Error{Code::kCorrupt, "the source is bad"};
  });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "the source is bad");
  EXPECT_EQ(content("f"), "old");
  EXPECT_EQ(files(), 1u);
}

TEST_F(UserFile, ErrorsNameThePath) {
  auto missing = open_user_file(path("none"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_NE(missing.error().message.find(path("none")), std::string::npos);

  Status nowhere = replace_user_file(path("no/f"), [](File&) -> Status {
    ADD_FAILURE() << "nothing can be written there";
    return {};
  });
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, Code::kNotFound);
}

TEST_F(UserFile, OnlyRegularFilesAreOpenedOrReplaced) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(open_user_file(path("fifo")).error().code, Code::kPermission);
  EXPECT_EQ(
      open_user_file(directory_.string()).error().code, Code::kPermission
  );
  Status replaced =
      replace_user_file(path("fifo"), [](File&) { return Status(); });
  EXPECT_EQ(replaced.error().code, Code::kPermission);
}

TEST_F(UserFile, ASymbolicLinkLeadsToTheFile) {
  std::ofstream(path("f")) << "text";
  fs::create_symlink("f", directory_ / "link");
  auto file = open_user_file(path("link"));
  ASSERT_TRUE(file);
  char text[8] = {};
  auto count = (*file)->read_at(0, std::as_writable_bytes(std::span(text)));
  ASSERT_TRUE(count);
  EXPECT_EQ(std::string(text, *count), "text");
}

}  // namespace
}  // namespace afterglow
