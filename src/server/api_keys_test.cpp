#include "server/api_keys.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace afterglow {
namespace {

using Keys = std::vector<std::string>;

TEST(ApiKeys, EachOfThemOpensAndNothingElseDoes) {
  const auto keys = ApiKeys::make({"alpha", "beta", "alphabet"});
  ASSERT_TRUE(keys.ok());
  for (const char* key : {"alpha", "beta", "alphabet"}) {
    EXPECT_TRUE(keys->contain(key)) << key;
  }
  for (const char* key :
       {"", "alph", "alpha ", "Alpha", "alphabeta", "gamma"}) {
    EXPECT_FALSE(keys->contain(key)) << key;
  }
  EXPECT_FALSE(keys->contain(std::string("alpha\0", 6)));
}

TEST(ApiKeys, WithoutKeysNothingIsAKey) {
  const auto keys = ApiKeys::make({});
  ASSERT_TRUE(keys.ok());
  EXPECT_TRUE(keys->empty());
  EXPECT_FALSE(keys->contain(""));
}

TEST(ApiKeys, AKeyThatNoHeaderCarriesIsRefusedAndNotTold) {
  for (const char* key : {"", "two words", "tab\there", "schl\xc3\xbcssel"}) {
    const auto keys = ApiKeys::make({"good", key});
    ASSERT_FALSE(keys.ok()) << key;
    EXPECT_EQ(keys.error().code, Code::kInvalidArgument);
    if (*key != 0) {
      EXPECT_EQ(keys.error().message.find(key), std::string::npos);
    }
  }
}

class ApiKeyFileTest : public ::testing::Test {
 protected:
  ApiKeyFileTest() {
    std::string name =
        (std::filesystem::temp_directory_path() / "afterglow-keys-XXXXXX")
            .string();
    folder_ = ::mkdtemp(name.data());
  }
  ~ApiKeyFileTest() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& text) {
    const std::string path = (folder_ / "keys").string();
    std::ofstream(path) << text;
    return path;
  }

  std::filesystem::path folder_;
};

TEST_F(ApiKeyFileTest, OneKeyALine) {
  const auto file =
      read_api_key_file(write("# clients\n\nalpha\n  beta \r\n#gamma\nlast#one")
      );
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(*file, (Keys{"alpha", "beta", "last#one"}));
}

TEST_F(ApiKeyFileTest, AFileWithoutKeysIsAnError) {
  for (const char* text : {"", "\n\n", "# none\n"}) {
    const auto file = read_api_key_file(write(text));
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.error().code, Code::kInvalidArgument);
    EXPECT_NE(file.error().message.find("no key"), std::string::npos);
  }
}

TEST_F(ApiKeyFileTest, WhatCannotBeReadIsAnError) {
  for (const std::string& path :
       {(folder_ / "missing").string(), folder_.string()}) {
    const auto file = read_api_key_file(path);
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.error().code, Code::kIo);
    EXPECT_NE(file.error().message.find(path), std::string::npos);
  }
}

}  // namespace
}  // namespace afterglow
