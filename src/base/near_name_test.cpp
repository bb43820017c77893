#include "base/near_name.h"

#include <gtest/gtest.h>

namespace afterglow {
namespace {

const std::vector<std::string> kNames = {
    "port",
    "host",
    "top-k",
    "top-p",
    "temp",
    "max-tokens",
    "prompt-cache-dir",
    "prompt-cache-size",
    "prompt-cache-bytes",
    "prompt-cache-disk-bytes",
};

TEST(NearName, SlipsOfTheKeyboardAreUnderstood) {
  struct Case {
    const char* word;
    const char* meant;
  };
  const Case table[] = {
      {"prot", "port"},   // swapped
      {"por", "port"},    // missing
      {"portt", "port"},  // surplus
      {"pott", "port"},   // wrong
      {"temo", "temp"},
      {"maxtokens", "max-tokens"},
      {"max-toekn", "max-tokens"},
      {"prompt-cache-bites", "prompt-cache-bytes"},
      {"propmt-chache-dirs", "prompt-cache-dir"},
  };
  for (const Case& c : table) {
    EXPECT_EQ(near_name(c.word, kNames), c.meant) << c.word;
  }
}

TEST(NearName, CaseAndJoinsDoNotCount) {
  EXPECT_EQ(near_name("MAX_TOKENS", kNames), "max-tokens");
  EXPECT_EQ(
      near_name("PROMPT_CHACE_DSK_BYTES", kNames), "prompt-cache-disk-bytes"
  );
  EXPECT_EQ(near_name("max_tokens", {"MAX_TOKENS"}), "MAX_TOKENS");
}

TEST(NearName, TheNearestOfSeveralWins) {
  EXPECT_EQ(near_name("top_k", kNames), "top-k");
  EXPECT_EQ(
      near_name("prompt-cache-disk-byte", kNames), "prompt-cache-disk-bytes"
  );
}

TEST(NearName, WhatIsFarIsNotGuessed) {
  for (const char* word :
       {"",
        "k",
        "to",
        "sport-s",
        "adapter-path",
        "prompt-cache",
        "prompt-cache-everything-there-is",
        "xyz"}) {
    EXPECT_EQ(near_name(word, kNames), "") << word;
  }
  EXPECT_EQ(near_name("port", {}), "");
}

TEST(NearName, TheHintHasThePrefix) {
  EXPECT_EQ(did_you_mean("prot", kNames, "--"), "; did you mean --port?");
  EXPECT_EQ(did_you_mean("xyz", kNames, "--"), "");
}

}  // namespace
}  // namespace afterglow
