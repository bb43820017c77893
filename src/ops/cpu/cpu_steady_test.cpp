#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <span>
#include <vector>

#include "base/hash.h"
#include "kernels/dispatch/dispatch.h"
#include "ops/cpu/cpu_test_model.h"

namespace {
std::atomic<std::size_t> allocations{0};
}

// GCC 12 takes the inlined pair below for a mismatch.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

// Counts every allocation of this program.
void* operator new(std::size_t bytes) {
  allocations.fetch_add(1);
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) {
    return memory;
  }
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace afterglow {
namespace {

using test::Random;
using test::random_tokens;
using test::TinyModel;

TEST(SteadyDecode, allocates_nothing) {
  for (Activations mode :
       {Activations::kInt16, Activations::kInt8, Activations::kF32}) {
    ThreadPool pool(2);
    TinyModel model(pool, mode, *available_kernels().back());
    Random random(5);
    std::vector<Token> tokens = random_tokens(400, random);
    auto kv = model.new_kv();
    model.feed(*kv, {tokens.data(), 300});
    std::vector<float> logits(TinyModel::kVocab);
    auto decode = [&](std::size_t at) {
      Span span{0, 1, kv.get()};
      model.step_into({&tokens[at], 1}, {&span, 1}, logits);
    };
    decode(300);
    decode(301);
    std::size_t before = allocations.load();
    for (std::size_t at = 302; at < 400; ++at) {
      decode(at);
    }
    EXPECT_EQ(allocations.load(), before) << to_string(mode);
  }
}

// The logits of a fixed model over fixed tokens, the same on every machine.
// Where a change of the arithmetic is meant, raise kNumerics with the digest:
// KV made by the older arithmetic must not be taken for the new.
TEST(Numerics, bits_change_only_with_kNumerics) {
  struct Golden {
    Activations mode;
    const char* digest;
  };
  const Golden goldens[] = {
      {Activations::kInt16,
       "ccd794f04da04d1b2e644a2ec1ea9f4459066a7f2cf4437a831d6161f9837957"},
      {Activations::kInt8,
       "1475c1cdaeb70ddacc0ac128693bfead2a5c4e29acd4e4d89830d7595c69b4d9"},
      {Activations::kF32,
       "a0f2d8e8c683d018de0068f08088302fa2d69d269ac3cf36de4364c70edb2a13"},
  };
  EXPECT_EQ(kNumerics, 1u);
  for (const Golden& golden : goldens) {
    ThreadPool pool(2);
    TinyModel model(pool, golden.mode, *available_kernels().back());
    Random random(7);
    std::vector<Token> tokens = random_tokens(300, random);
    auto kv = model.new_kv();
    std::vector<float> logits = model.feed(*kv, tokens);
    Sha256 hash;
    hash.bytes(std::as_bytes(std::span(logits)));
    PagePtr page = kv->seal(0);
    hash.bytes({page->data(), page->size()});
    EXPECT_EQ(hex(hash.finish()), golden.digest) << to_string(golden.mode);
  }
}

}  // namespace
}  // namespace afterglow
