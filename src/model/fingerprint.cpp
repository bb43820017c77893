#include "model/fingerprint.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "model/mapped_file.h"
#include "model/rope.h"
#include "ops/numerics.h"

namespace afterglow {
namespace {

constexpr unsigned kMaxThreads = 4;

using Sum = std::array<std::uint8_t, 16>;

// The threads share the tensors by a counter, the largest first so that none
// is left alone with a large one at the end.
std::vector<Sum> sum_all(const std::vector<RawTensor>& tensors) {
  std::vector<std::size_t> order(tensors.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return tensors[a].bytes.size() > tensors[b].bytes.size();
  });
  std::vector<Sum> sums(tensors.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < order.size(); i = next++) {
      const auto bytes = tensors[order[i]].bytes;
      sums[order[i]] = xxh3_128(bytes);
      drop_mapped_pages(bytes);
    }
  };
  const unsigned threads =
      std::clamp(std::thread::hardware_concurrency(), 1U, kMaxThreads);
  std::vector<std::thread> pool;
  for (unsigned i = 1; i < threads; ++i) {
    pool.emplace_back(work);
  }
  work();
  for (std::thread& thread : pool) {
    thread.join();
  }
  return sums;
}

}  // namespace

std::future<Sha256Digest> start_fingerprint(
    std::vector<RawTensor> tensors, std::string config
) {
  return std::async(
      std::launch::async,
      [tensors = std::move(tensors), config = std::move(config)] {
        const std::vector<Sum> sums = sum_all(tensors);
        Sha256 hash;
        hash.text("afterglow-model-1").text(config).u64(tensors.size());
        for (std::size_t i = 0; i < tensors.size(); ++i) {
          hash.text(tensors[i].name).text(tensors[i].dtype);
          hash.u64(tensors[i].shape.size());
          for (std::uint64_t dimension : tensors[i].shape) {
            hash.u64(dimension);
          }
          hash.bytes(std::as_bytes(std::span(sums[i])));
        }
        return hash.finish();
      }
  );
}

Sha256Digest kv_spec_digest(
    const std::string& backend, const KvLayout& layout, const Rope& rope
) {
  return Sha256()
      .text("afterglow-kv-spec-1")
      .u32(kNumerics)
      .text(backend)
      .text(layout.describe())
      .text(describe_rope(rope))
      .finish();
}

}  // namespace afterglow
