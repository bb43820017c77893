#include <gtest/gtest.h>

#include "ops/mlx/mlx_ops.h"

namespace afterglow {
namespace {

TEST(MlxOpsDisabled, the_error_names_the_build_flag) {
  ThreadPool pool(1);
  auto ops = make_mlx_ops(pool);
  ASSERT_FALSE(ops.ok());
  EXPECT_EQ(ops.error().code, Code::kUnsupported);
  EXPECT_NE(ops.error().message.find("AFTERGLOW_MLX=ON"), std::string::npos);
}

}  // namespace
}  // namespace afterglow
