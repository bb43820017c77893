#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "kernels/bench/suite.h"
#include "kernels/half.h"
#include "kernels/testing/random.h"

namespace afterglow::bench {
namespace {

constexpr std::size_t kDim = 64;
constexpr std::size_t kPageKeys = 256;                       // of an AttendPage
constexpr std::size_t kHeadElements = 2 * kPageKeys * kDim;  // K, then V

/// f16 KV of pages, each with one head; as many copies as are asked for.
struct Kv {
  std::vector<std::uint16_t> elements;
  std::size_t next = 0;

  explicit Kv(std::size_t heads) : elements(heads * kHeadElements) {
    test::Random random(8);
    std::uint16_t some[1024];
    for (std::uint16_t& x : some) x = float_to_half(random.unit());
    for (std::size_t i = 0; i < elements.size(); ++i) {
      elements[i] = some[(i + i / 1024 * 7) % 1024];
    }
  }
  const std::uint16_t* head(std::size_t index) const {
    return elements.data() + index * kHeadElements;
  }
};

/// One page and KV head for up to query_rows rows that see all of it.
void attend(
    const Kernels& k, const float* q, std::size_t rows, const std::uint16_t* kv
) {
  std::int32_t first[64] = {};
  std::int32_t last[64];
  std::fill_n(last, rows, static_cast<std::int32_t>(kPageKeys));
  float largest[64];
  float sum[64];
  float values[64 * kDim];
  k.attend_page({
      .q = q,
      .rows = rows,
      .k_dim = kDim,
      .v_dim = kDim,
      .half = true,
      .k = kv,
      .v = kv + kPageKeys * kDim,
      .first = first,
      .last = last,
      .softcap = 0,
      .largest = largest,
      .sum = sum,
      .values = values,
  });
}

// A step over 3000 tokens' KV with so many query rows a KV head. The heads'
// KV lies in memory, or stays in the cache where it is one page's.
void add_pages(
    Suite& suite,
    const Kernels& k,
    const std::string& name,
    std::size_t queries,
    std::size_t heads_in_memory
) {
  constexpr std::size_t kHeads = 36;  // 12 pages of 3 KV heads
  const double products = static_cast<double>(kHeads * queries * kPageKeys);
  const bool decodes = heads_in_memory > kHeads;
  const Work work{
      .bytes = decodes ? static_cast<double>(kHeads * kHeadElements * 2) : 0,
      .operations = products * kDim * 4,
      .limit = decodes ? Work::Limit::kMemory : Work::Limit::kFloats};
  suite.add(k, name, work, [=, &k, &suite] {
    auto kv = std::make_shared<Kv>(heads_in_memory);
    auto q = std::make_shared<std::vector<float>>(
        test::Random(9).floats(queries * kDim)
    );
    return [=, &k, &suite] {
      const std::size_t start = kv->next;
      kv->next = (start + kHeads) % heads_in_memory;
      suite.pool().run(kHeads, [&](std::size_t job, int) {
        const auto* head = kv->head((start + job) % heads_in_memory);
        for (std::size_t r = 0; r < queries; r += k.query_rows) {
          const std::size_t rows = std::min(k.query_rows, queries - r);
          attend(k, q->data() + r * kDim, rows, head);
        }
      });
    };
  });
}

struct Total {
  float largest = 0, sum = 0;
  float values[kDim] = {}, partial[kDim] = {}, out[kDim] = {};

  AttendTotal total() { return {&largest, &sum, values}; }
};

void add_merging(Suite& suite, const Kernels& k) {
  suite.add(k, "attend_add/64", {.bytes = 12 * kDim}, [&k] {
    auto all = std::make_shared<Total>();
    return [=, &k] {
      all->sum = 1;
      k.attend_add(all->total(), 0.5F, 2, all->partial, kDim);
    };
  });
  suite.add(k, "attend_finish/64", {.bytes = 8 * kDim}, [&k] {
    auto all = std::make_shared<Total>();
    all->sum = 2;
    return [=, &k] { k.attend_finish(all->total(), kDim, all->out); };
  });
}

}  // namespace

void add_attention(Suite& suite) {
  // 138 MB of f16 KV, twice a context of 3000 tokens in 30 layers.
  constexpr std::size_t kInMemory = 2112;
  for_each_target([&](const Kernels& k) {
    add_pages(suite, k, "attend_page/decode/memory", 3, kInMemory);
    add_pages(suite, k, "attend_page/decode/cache", 3, 3);
    add_pages(suite, k, "attend_page/prefill/96_rows", 96, 36);
    add_merging(suite, k);
  });
}

}  // namespace afterglow::bench
