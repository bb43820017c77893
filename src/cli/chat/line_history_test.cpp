#include "cli/chat/line_history.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace afterglow {
namespace {

namespace fs = std::filesystem;

class LineHistories : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "agXXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string file() const { return folder_ / "state/afterglow/history"; }
  std::size_t lines_of_file() const {
    std::ifstream in(file());
    std::size_t count = 0;
    for (std::string line; std::getline(in, line);) ++count;
    return count;
  }
  static mode_t mode(const fs::path& path) {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777;
  }

  fs::path folder_;
};

TEST_F(LineHistories, KeepLinesWithTheirBreaks) {
  const std::vector<std::string> lines = {
      "a", "two\nlines\t", "größer \"日本\""};
  {
    LineHistory history(file());
    EXPECT_TRUE(history.read(10).empty());
    for (const std::string& line : lines) history.add(line);
  }
  EXPECT_EQ(LineHistory(file()).read(10), lines);
  EXPECT_EQ(lines_of_file(), 3u);
}

TEST_F(LineHistories, DoWithoutAFolderThatCannotBeLookedAt) {
  const fs::path loop = folder_ / "loop";
  fs::create_symlink(loop, loop);
  LineHistory history((loop / "state/history").string());
  EXPECT_TRUE(history.read(10).empty());
  history.add("a");
  EXPECT_TRUE(history.read(10).empty());
  EXPECT_TRUE(fs::is_symlink(fs::symlink_status(loop)));
}

TEST_F(LineHistories, ArePrivate) {
  LineHistory(file()).add("a");
  EXPECT_EQ(mode(file()), 0600u);
  EXPECT_EQ(mode(fs::path(file()).parent_path()), 0700u);
}

TEST_F(LineHistories, OfTwoProcessesAreOne) {
  LineHistory one(file());
  LineHistory other(file());
  one.add("1");
  other.add("2");
  one.add("3");
  EXPECT_EQ(other.read(10), (std::vector<std::string>{"1", "2", "3"}));
}

TEST_F(LineHistories, AreCutWhenTheyHaveGrownToTwice) {
  LineHistory history(file());
  const std::vector<std::string> latest = {"4", "5", "6"};
  for (int i = 0; i < 6; ++i) history.add(std::to_string(i));
  EXPECT_EQ(history.read(4).front(), "2");
  EXPECT_EQ(lines_of_file(), 6u);
  history.add("6");
  EXPECT_EQ(history.read(3), latest);
  EXPECT_EQ(lines_of_file(), 3u);
  EXPECT_EQ(history.read(3), latest);
}

TEST_F(LineHistories, PassOverWhatIsNoLine) {
  LineHistory history(file());
  history.add("a");
  std::ofstream(file(), std::ios::app) << "{\n7\nnull\n\"half\n\n";
  history.add("b");
  history.add("no \xff UTF-8");
  EXPECT_EQ(history.read(10), (std::vector<std::string>{"a", "b"}));
}

TEST_F(LineHistories, AreNothingWhereTheyCannotBe) {
  LineHistory none("");
  none.add("a");
  EXPECT_TRUE(none.read(10).empty());
  std::ofstream(folder_ / "state") << "no folder";
  LineHistory blocked(file());
  blocked.add("a");
  EXPECT_TRUE(blocked.read(10).empty());
}

TEST_F(LineHistories, LieInTheStateOfTheUser) {
  ASSERT_EQ(::setenv("HOME", "/home/me", 1), 0);
  ASSERT_EQ(::setenv("XDG_STATE_HOME", "/state", 1), 0);
  EXPECT_EQ(default_history_file(), "/state/afterglow/chat_history");
  ASSERT_EQ(::setenv("XDG_STATE_HOME", "relative", 1), 0);
  const char* usual = "/home/me/.local/state/afterglow/chat_history";
  EXPECT_EQ(default_history_file(), usual);
  ASSERT_EQ(::unsetenv("XDG_STATE_HOME"), 0);
  EXPECT_EQ(default_history_file(), usual);
  ASSERT_EQ(::unsetenv("HOME"), 0);
  EXPECT_EQ(default_history_file(), "");
}

}  // namespace
}  // namespace afterglow
