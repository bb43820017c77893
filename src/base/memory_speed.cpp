#include "base/memory_speed.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>

namespace afterglow {
namespace {

using Clock = std::chrono::steady_clock;
using Vector = std::uint64_t __attribute__((vector_size(16)));

constexpr std::size_t kBlock = std::size_t{1} << 20;
constexpr int kPasses = 7;

// Several streams at once keep more reads on their way than one does.
constexpr std::size_t kStreams = 4;

std::uint64_t read_block(const std::byte* data) {
  constexpr std::size_t kStream = kBlock / kStreams / sizeof(Vector);
  const auto* p = reinterpret_cast<const Vector*>(data);
  Vector sums[kStreams] = {};
  for (std::size_t i = 0; i < kStream; i += 4) {
    for (std::size_t s = 0; s < kStreams; ++s) {
      const Vector* line = p + s * kStream + i;
      sums[s] ^= line[0] ^ line[1] ^ line[2] ^ line[3];
    }
  }
  const Vector all = sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
  return all[0] ^ all[1];
}

}  // namespace

MemorySpeed::MemorySpeed(ThreadPool& pool) : pool_(pool), memory_(kBytes) {
  pool_.run(kBytes / kBlock, [&](std::size_t block, int) {
    std::memset(memory_.data() + block * kBlock, 1, kBlock);
  });
}

double MemorySpeed::measure() {
  double fastest = 0;
  for (int i = 0; i < kPasses; ++i) fastest = std::max(fastest, pass());
  return fastest;
}

double MemorySpeed::pass() {
  std::atomic<std::uint64_t> sink{0};
  const auto start = Clock::now();
  pool_.run(kBytes / kBlock, [&](std::size_t block, int) {
    const std::uint64_t sum = read_block(memory_.data() + block * kBlock);
    sink.fetch_xor(sum, std::memory_order_relaxed);
  });
  const double took =
      std::chrono::duration<double>(Clock::now() - start).count();
  return static_cast<double>(kBytes) / took;
}

}  // namespace afterglow
