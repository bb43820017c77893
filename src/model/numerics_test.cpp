#include "ops/numerics.h"

#include <gtest/gtest.h>

#include "base/hash.h"
#include "model/golden.h"
#include "model/test_runner.h"

namespace afterglow {
namespace {

constexpr char kFile[] = "tests/parity/golden/numerics.json";

// Over the logits of a page of tokens and the KV of the full page.
std::string digest(const std::string& name, Activations mode) {
  TestRunner runner(Golden::directory() + name, mode, 2);
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < kPageTokens; ++i) {
    tokens.push_back(static_cast<Token>(i * i * 7 % 96));
  }
  const auto kv = runner.new_kv();
  const auto logits = runner.step({{kv.get(), tokens}});
  const PagePtr page = kv->seal(0);
  const auto sum = Sha256()
                       .bytes(std::as_bytes(std::span(logits)))
                       .bytes({page->data(), page->size()})
                       .finish();
  return hex(sum);
}

// Cached KV of another arithmetic must never be used: a change of bits needs
// a new kNumerics.
TEST(Numerics, BitsOfLogitsAndKvChangeOnlyWithTheNumber) {
  nlohmann::json now;
  now["numerics"] = kNumerics;
  for (const char* name :
       {"q4-g32",
        "q4-g64-bias",
        "q8-mixed",
        "q2356",
        "mxfp4",
        "nvfp4",
        "tiny.gguf",
        "tiny-k.gguf"}) {
    for (Activations mode :
         {Activations::kInt16, Activations::kInt8, Activations::kF32}) {
      now[std::string(name) + " " + to_string(mode)] = digest(name, mode);
    }
  }
  const auto recorded = read_test_json(kFile);
  if (recorded == now) {
    return;
  }
  const bool bumped = recorded.value("numerics", 0u) != kNumerics;
  FAIL() << (bumped ? "kNumerics changed: write the digests below to "
                    : "the bits changed but kNumerics did not: raise "
                      "kNumerics, then write the digests to ")
         << kFile << "\n"
         << now.dump(1);
}

}  // namespace
}  // namespace afterglow
