#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "model/golden.h"
#include "model/test_runner.h"

namespace afterglow {
namespace {

class TinyModels : public testing::TestWithParam<const char*> {
 protected:
  // The largest difference to mlx_lm's logits, and the largest of those.
  struct Difference {
    double largest = 0, size = 0;
  };
  Difference difference(Activations mode) {
    const std::string name = GetParam();
    const bool is_gguf = name.ends_with(".gguf");
    const Golden golden(
        is_gguf ? name.substr(0, name.size() - 5) + ".safetensors"
                : name + "/golden.safetensors"
    );
    const auto tokens = golden.values<Token>("tokens");
    const auto wanted = golden.values<float>("logits");
    TestRunner runner(Golden::directory() + name, mode, 2);
    const auto kv = runner.new_kv();
    const auto logits = runner.step({{kv.get(), tokens}});
    EXPECT_EQ(logits.size(), wanted.size());
    Difference found;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      found.largest =
          std::max(found.largest, std::fabs(double(logits[i]) - wanted[i]));
      found.size = std::max(found.size, std::fabs(double(wanted[i])));
    }
    return found;
  }
};

TEST_P(TinyModels, LogitsAreMlxLms) {
  const auto [f32, size] = difference(Activations::kF32);
  const double int16 = difference(Activations::kInt16).largest;
  const double int8 = difference(Activations::kInt8).largest;
  std::printf(
      "%s: f32 %.2e, int16 %.2e, int8 %.2e\n", GetParam(), f32, int16, int8
  );
  EXPECT_LT(f32, 1e-4);
  // KV in f16 besides.
  EXPECT_LT(int16, 3e-2);
  EXPECT_LT(int8, 0.1 * size);
}

INSTANTIATE_TEST_SUITE_P(
    All,
    TinyModels,
    testing::Values(
        "q4-g32",
        "q4-g64-bias",
        "q4-g128-llama3",
        "q8-mixed",
        "q2356",
        "mxfp4",
        "nvfp4",
        "bf16-sharded",
        "f16-interleaved",
        "tiny.gguf",
        "tiny-k.gguf"
    ),
    [](const auto& info) {
      std::string name = info.param;
      std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
      return name;
    }
);

}  // namespace
}  // namespace afterglow
