#include "kernels/dispatch/dispatch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "kernels/dispatch/cpu_features.h"

namespace afterglow {
namespace {

TEST(Dispatch, empty_is_the_fastest_and_names_are_found) {
  EXPECT_EQ(*select_kernels(""), available_kernels().back());
  EXPECT_STREQ(available_kernels().front()->name, "scalar");
  for (const Kernels* kernels : available_kernels()) {
    Result<const Kernels*> found = select_kernels(kernels->name);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(*found, kernels);
  }
}

TEST(Dispatch, an_unknown_name_is_told_the_known_ones) {
  Result<const Kernels*> unknown = select_kernels("sse9");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, Code::kInvalidArgument);
  EXPECT_NE(unknown.error().message.find("sse9"), std::string::npos);
  for (const Target& target : all_targets()) {
    EXPECT_NE(
        unknown.error().message.find(target.kernels->name), std::string::npos
    );
  }
}

// On older processors, which tests/targets plays, there are such targets.
TEST(Dispatch, a_target_runs_where_all_that_it_needs_is_and_says_what_lacks) {
  for (const Target& target : all_targets()) {
    bool complete = true;
    Result<const Kernels*> found = select_kernels(target.kernels->name);
    for (const char* need : target.needs) {
      auto feature = std::find_if(
          cpu_features().begin(),
          cpu_features().end(),
          [&](const CpuFeature& f) { return std::string(f.name) == need; }
      );
      ASSERT_NE(feature, cpu_features().end()) << need;
      complete = complete && feature->here;
      if (!feature->here) {
        ASSERT_FALSE(found.ok());
        EXPECT_EQ(found.error().code, Code::kUnsupported);
        EXPECT_NE(found.error().message.find(need), std::string::npos);
      }
    }
    EXPECT_EQ(target.runs_here, complete) << target.kernels->name;
    EXPECT_EQ(found.ok(), complete) << target.kernels->name;
  }
}

TEST(Dispatch, targets_have_names_of_their_own) {
  for (const Target& a : all_targets()) {
    for (const Target& b : all_targets()) {
      bool same = std::string(a.kernels->name) == b.kernels->name;
      EXPECT_EQ(same, a.kernels == b.kernels);
    }
  }
}

}  // namespace
}  // namespace afterglow
