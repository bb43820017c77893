#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <future>
#include <random>
#include <string>
#include <vector>

#include "kv/prompt_cache.h"
#include "store/store.h"

// store_bench DIRECTORY [BLOCKS]: writes BLOCKS pages of SmolLM2-135M's KV
// (30 layers, 3 KV heads of 64, f16: 5.6 MiB each), opens the directory again
// and restores them, with a warm page cache.

namespace {

using namespace afterglow;
using Clock = std::chrono::steady_clock;

double seconds(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Instance {
  Instance(const std::string& path, int io_threads) {
    options.layout.layers.assign(30, LayerKv{3, 64, 64, KvType::kF16, 0});
    options.fingerprint.fill(1);
    options.spec.fill(2);
    options.disk_bytes = std::uint64_t{1} << 40;
    options.io_threads = io_threads;
    std::size_t page_bytes = options.layout.page_bytes();
    pool = std::make_unique<PagePool>(page_bytes);
    cache = std::make_unique<PromptCache>(page_bytes, CacheLimits{}, true);
    root = root_id(options.fingerprint, options.spec, "");
    auto files = open_posix_file_system(path);
    CHECK(files.ok(), files.error().message);
    auto opened = Store::open(std::move(*files), options, *cache, *pool);
    CHECK(opened.ok(), opened.error().message);
    store = std::move(*opened);
  }

  StoreOptions options;
  std::unique_ptr<PagePool> pool;
  std::unique_ptr<PromptCache> cache;
  BlockId root;
  std::unique_ptr<Store> store;
};

void write(const std::string& path, const std::vector<Token>& tokens) {
  Instance instance(path, 2);
  std::mt19937_64 random(1);
  std::vector<PagePtr> pages;
  for (std::size_t at = 0; at < tokens.size(); at += kPageTokens) {
    std::shared_ptr<Page> page = instance.pool->make();
    for (std::size_t i = 0; i < page->size(); i += 8) {
      std::uint64_t value = random();
      std::memcpy(page->data() + i, &value, 8);
    }
    pages.push_back(std::move(page));
  }
  auto begin = Clock::now();
  {
    Trail trail = instance.cache->start(instance.root, {}, {});
    for (std::size_t at = 0; at < tokens.size(); at += kPageTokens) {
      trail.append(
          std::span(tokens).subspan(at, kPageTokens), pages[at / kPageTokens]
      );
    }
  }
  FlushReport report =
      instance.store->flush(Clock::now() + std::chrono::minutes(5));
  CHECK(report.complete, instance.store->stats().last_error);
  StoreStats stats = instance.store->stats();
  std::printf(
      "write    %6.2f GB/s, synced (%llu blocks, %.0f MB)\n",
      static_cast<double>(stats.written_bytes) / 1e9 /
          std::max(1e-9, seconds(begin)),
      static_cast<unsigned long long>(stats.written_blocks),
      static_cast<double>(stats.written_bytes) / 1e6
  );
}

void restore(
    const std::string& path, const std::vector<Token>& tokens, int threads
) {
  auto begin = Clock::now();
  Instance instance(path, threads);
  double opened = seconds(begin);
  while (!instance.store->stats().index_complete) {
    std::this_thread::yield();
  }
  double indexed = seconds(begin);
  begin = Clock::now();
  std::clock_t cpu = std::clock();
  std::promise<Restored> promise;
  Match match = instance.cache->lookup(instance.root, tokens);
  instance.store->restore(
      {.root = instance.root,
       .prompt = tokens,
       .match = std::move(match),
       .done = [&](Restored restored
               ) { promise.set_value(std::move(restored)); }}
  );
  Restored restored = promise.get_future().get();
  double took = seconds(begin);
  double cpu_took =
      static_cast<double>(std::clock() - cpu) / double{CLOCKS_PER_SEC};
  CHECK(restored.disk_tokens == tokens.size());
  double bytes = static_cast<double>(tokens.size() / kPageTokens) *
                 static_cast<double>(instance.options.layout.page_bytes());
  std::printf(
      "restore  %6.2f GB/s (%.2f GB per CPU second), %d threads, %.1f ms; "
      "open %.1f ms, index %.1f ms\n",
      bytes / 1e9 / took,
      bytes / 1e9 / cpu_took,
      threads,
      took * 1e3,
      opened * 1e3,
      indexed * 1e3
  );
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: store_bench DIRECTORY [BLOCKS]\n");
    return 2;
  }
  std::size_t blocks = argc > 2 ? std::stoul(argv[2]) : 48;
  std::vector<Token> tokens(blocks * kPageTokens);
  std::mt19937 random(7);
  for (Token& token : tokens) {
    token = static_cast<Token>(random() % 49152);
  }
  write(argv[1], tokens);
  for (int threads : {1, 2, 1, 2}) {
    restore(argv[1], tokens, threads);
  }
  return 0;
}
