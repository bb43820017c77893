#include "model/model_name.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace afterglow {
namespace {

namespace fs = std::filesystem;

class ModelName : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "agXXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }
  fs::path add(const fs::path& path) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << "x";
    return root_ / path;
  }
  fs::path root_;
};

TEST_F(ModelName, IsThatOfTheFileOrDirectory) {
  const fs::path file = add("some.model/weights.Q4_1.gguf");
  EXPECT_EQ(model_name(file.string()), "weights.Q4_1");
  EXPECT_EQ(model_name(file.parent_path().string()), "some.model");
  EXPECT_EQ(model_name(file.parent_path().string() + "/"), "some.model");
  EXPECT_EQ(model_name(file.parent_path().string() + "/."), "some.model");
}

TEST_F(ModelName, FollowsLinks) {
  const fs::path file = add("a/real.gguf");
  fs::create_symlink(file, root_ / "link.gguf");
  fs::create_directory_symlink(root_ / "a", root_ / "b");
  EXPECT_EQ(model_name((root_ / "link.gguf").string()), "real");
  EXPECT_EQ(model_name((root_ / "b").string()), "a");
}

TEST_F(ModelName, IsTheHubsNameInTheHubsCache) {
  const fs::path snapshot =
      root_ / "models--org--Some-Model.v2/snapshots" / std::string(40, 'a');
  fs::create_directories(snapshot / "sub");
  const fs::path blob = add("models--org--Some-Model.v2/blobs/0123");
  fs::create_symlink(blob, snapshot / "m-Q8_0.gguf");
  fs::create_symlink(blob, snapshot / "sub/m-Q4_0.gguf");
  EXPECT_EQ(model_name(snapshot.string()), "org/Some-Model.v2");
  EXPECT_EQ(model_name((snapshot / "m-Q8_0.gguf").string()), "m-Q8_0");
  EXPECT_EQ(model_name((snapshot / "sub/m-Q4_0.gguf").string()), "m-Q4_0");
}

}  // namespace
}  // namespace afterglow
