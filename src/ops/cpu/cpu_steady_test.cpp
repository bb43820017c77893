#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <span>
#include <vector>

#include "kernels/dispatch/dispatch.h"
#include "kernels/testing/digest.h"
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
    std::uint64_t digest;
  };
  const Golden goldens[] = {
      {Activations::kInt16, 7219690980065090596u},
      {Activations::kInt8, 17149749995560767901u},
      {Activations::kF32, 412524491645331561u},
  };
  EXPECT_EQ(kNumerics, 1u);
  for (const Golden& golden : goldens) {
    ThreadPool pool(2);
    TinyModel model(pool, golden.mode, *available_kernels().back());
    Random random(7);
    std::vector<Token> tokens = random_tokens(300, random);
    auto kv = model.new_kv();
    std::vector<float> logits = model.feed(*kv, tokens);
    test::Digest digest;
    digest.add(std::as_bytes(std::span(logits)));
    PagePtr page = kv->seal(0);
    digest.add({page->data(), page->size()});
    EXPECT_EQ(digest.value(), golden.digest) << to_string(golden.mode);
  }
}

}  // namespace
}  // namespace afterglow
