#include "cli/default_model.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace afterglow {
namespace {

namespace fs = std::filesystem;

class DefaultModel : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "agXXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
    fs::create_directories(root_ / "bin");
  }
  void TearDown() override { fs::remove_all(root_); }
  void add(const std::string& name) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << "x";
  }
  fs::path root_;
};

TEST_F(DefaultModel, TheEnvironmentComesFirst) {
  add("bin/models/a.gguf");
  EXPECT_EQ(*find_default_model(root_ / "bin", "/x/y.gguf"), "/x/y.gguf");
  EXPECT_NE(*find_default_model(root_ / "bin", ""), "");
}

TEST_F(DefaultModel, TheInstalledOneComesBeforeTheBuildTrees) {
  add("bin/models/a.gguf");
  EXPECT_EQ(
      *find_default_model(root_ / "bin", nullptr), root_ / "bin/models/a.gguf"
  );
  add("share/afterglow/models/b.gguf");
  EXPECT_EQ(
      *find_default_model(root_ / "bin", nullptr),
      root_ / "share/afterglow/models/b.gguf"
  );
}

TEST_F(DefaultModel, OfSeveralTheOneOfSetUpIsTaken) {
  add("bin/models/A.gguf");
  add("bin/models/B.gguf");
  const auto unclear = find_default_model(root_ / "bin", nullptr);
  ASSERT_FALSE(unclear.ok());
  EXPECT_NE(unclear.error().message.find("A.gguf, B.gguf"), std::string::npos);
  add("bin/models/SmolLM2-135M-Instruct.Q4_1.gguf");
  EXPECT_EQ(
      *find_default_model(root_ / "bin", nullptr),
      root_ / "bin/models/SmolLM2-135M-Instruct.Q4_1.gguf"
  );
}

TEST_F(DefaultModel, TheErrorNamesThePlaces) {
  const auto none = find_default_model(root_ / "bin", nullptr);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, Code::kNotFound);
  for (const char* place :
       {"share/afterglow/models", "bin/models", "--model"}) {
    EXPECT_NE(none.error().message.find(place), std::string::npos) << place;
  }
}

}  // namespace
}  // namespace afterglow
