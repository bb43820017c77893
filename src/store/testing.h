#pragma once

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/file_system.h"
#include "base/page.h"
#include "kv/prompt_cache.h"
#include "store/block_format.h"
#include "store/store.h"

// What the store's tests share.

namespace afterglow::testing {

/// Two unlike layers, 28 KiB a page.
inline KvLayout small_layout() {
  KvLayout layout;
  layout.layers = {{2, 8, 8, KvType::kF16, 0}, {1, 4, 8, KvType::kF32, 0}};
  return layout;
}

inline ModelKey small_key(std::uint8_t model = 1) {
  ModelKey key;
  key.fingerprint.fill(model);
  key.spec.fill(0x5e);
  key.layout = small_layout();
  return key;
}

inline BlockId root_of(const ModelKey& key) {
  return root_id(key.fingerprint, key.spec, "");
}

inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15)) * 0xbf58476d1ce4e5b9;
  return (x ^ (x >> 29)) * 0x94d049bb133111eb;
}

/// What a model would keep for the block's t-th token: depends on all tokens
/// before it and on nothing else.
inline std::vector<std::uint64_t> token_states(const Block& block) {
  std::uint64_t state;
  std::memcpy(&state, block.parent.bytes.data(), sizeof state);
  std::vector<std::uint64_t> states;
  for (Token token : block.tokens) {
    state = mix(state, static_cast<std::uint64_t>(token));
    states.push_back(state);
  }
  return states;
}

/// Calls visit(layer, is_v, row, token, bytes of the element) for each element
/// that the block's tokens fill in a page.
template <class Visit>
void for_each_element(
    const KvLayout& layout, std::byte* page, std::size_t n, Visit visit
) {
  for (std::size_t i = 0; i < layout.layers.size(); ++i) {
    const LayerKv& kv = layout.layers[i];
    std::size_t element = size_of(kv.type);
    std::byte* k = page + layout.k_offset(i, kPageTokens);
    for (std::size_t row = 0; row < kv.kv_heads * kv.k_dim; ++row) {
      for (std::size_t t = 0; t < n; ++t) {
        visit(i, 0, row, t, std::span(k + (row * 256 + t) * element, element));
      }
    }
    std::byte* v = page + layout.v_offset(i, kPageTokens);
    for (std::size_t head = 0; head < kv.kv_heads; ++head) {
      for (std::size_t t = 0; t < n; ++t) {
        for (std::size_t d = 0; d < kv.v_dim; ++d) {
          std::size_t at = ((head * 256 + t) * kv.v_dim + d) * element;
          visit(i, 1, head * kv.v_dim + d, t, std::span(v + at, element));
        }
      }
    }
  }
}

inline std::uint64_t element_value(
    std::uint64_t state, std::size_t layer, int is_v, std::size_t row
) {
  return mix(state, (layer << 32) ^ (std::size_t(is_v) << 24) ^ row);
}

/// A page as the model would fill it; other bytes are 0xee.
inline PagePtr make_page(
    PagePool& pool, const KvLayout& layout, const Block& b
) {
  std::shared_ptr<Page> page = pool.make();
  std::memset(page->data(), 0xee, page->size());
  auto states = token_states(b);
  for_each_element(
      layout,
      page->data(),
      b.tokens.size(),
      [&](auto layer, auto is_v, auto row, auto t, auto bytes) {
        std::uint64_t value = element_value(states[t], layer, is_v, row);
        std::memcpy(bytes.data(), &value, bytes.size());
      }
  );
  return page;
}

/// Whether the page holds what the model would have computed.
inline bool page_is_right(
    const KvLayout& layout, const Page& page, const Block& block
) {
  bool right = true;
  auto states = token_states(block);
  for_each_element(
      layout,
      const_cast<std::byte*>(page.data()),
      block.tokens.size(),
      [&](auto layer, auto is_v, auto row, auto t, auto bytes) {
        std::uint64_t value = element_value(states[t], layer, is_v, row);
        right = right && std::memcmp(bytes.data(), &value, bytes.size()) == 0;
      }
  );
  return right;
}

inline std::vector<Token> make_tokens(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Token> tokens(count);
  for (Token& token : tokens) {
    token = static_cast<Token>(random() % 50000);
  }
  return tokens;
}

inline std::vector<Token> join(
    std::vector<Token> a, const std::vector<Token>& b
) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Waits until a condition holds; false when it does not within 20 seconds.
inline bool eventually(const std::function<bool()>& condition) {
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// Names in a directory.
inline std::vector<std::string> list(FileSystem& files, std::string_view name) {
  auto found = files.list(name);
  EXPECT_TRUE(found) << (found ? "" : found.error().message);
  return found ? std::move(*found) : std::vector<std::string>();
}

/// Bytes of all block files of one model.
inline std::uint64_t block_bytes(FileSystem& files, const std::string& folder) {
  std::uint64_t bytes = 0;
  for (const std::string& name : list(files, folder)) {
    auto info = files.info(folder + "/" + name);
    bytes += info ? info->bytes : 0;
  }
  return bytes;
}

inline std::vector<std::byte> read_file(FileSystem& files, std::string name) {
  auto file = files.open(name);
  EXPECT_TRUE(file) << name;
  std::vector<std::byte> bytes(file ? (*file)->info()->bytes : 0);
  if (file) {
    EXPECT_TRUE((*file)->read_at(0, bytes));
  }
  return bytes;
}

inline void write_file(
    FileSystem& files, std::string name, std::span<const std::byte> bytes
) {
  auto file = files.open_or_create(name);
  ASSERT_TRUE(file) << name;
  ASSERT_TRUE((*file)->truncate(0));
  ASSERT_TRUE((*file)->write_at(0, bytes));
  ASSERT_TRUE((*file)->sync());
}

/// A directory of its own that goes with the object.
class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(
      const std::filesystem::path& parent =
          std::filesystem::temp_directory_path()
  ) {
    std::string name = (parent / "afterglow-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      ADD_FAILURE() << "no temporary directory";
    }
    path_ = name;
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

  /// Where syncs cost nothing, if there is such a place: a kill, unlike a
  /// power cut, loses nothing that was written.
  static std::filesystem::path in_memory() {
    const char* memory = "/dev/shm";
    return ::access(memory, W_OK) == 0 ? std::filesystem::path(memory)
                                       : std::filesystem::temp_directory_path();
  }

 private:
  std::string path_;
};

struct ProcessOptions {
  std::uint64_t disk_bytes = std::uint64_t{1} << 40;
  std::uint8_t model = 1;
  std::chrono::milliseconds tail_delay{0};
  std::uint64_t daily_write_bytes = 0;
  std::int64_t ttl_ns = 0;
  CacheClock clock = CacheClock::system();
};

/// One process: a cache with a store below it.
class Process {
 public:
  explicit Process(std::unique_ptr<FileSystem> files, std::uint64_t disk_bytes)
      : Process(std::move(files), ProcessOptions{.disk_bytes = disk_bytes}) {}

  explicit Process(
      std::unique_ptr<FileSystem> files, ProcessOptions settings = {}
  )
      : key_(small_key(settings.model)), pool_(key_.layout.page_bytes()) {
    CacheLimits limits;
    limits.disk_bytes = settings.disk_bytes;
    limits.min_match_tokens = 0;
    limits.ttl_ns = settings.ttl_ns;
    cache_ = std::make_unique<PromptCache>(
        key_.layout.page_bytes(), limits, true, settings.clock
    );
    StoreOptions options;
    options.fingerprint = key_.fingerprint;
    options.spec = key_.spec;
    options.layout = key_.layout;
    options.model_name = "test model";
    options.disk_bytes = settings.disk_bytes;
    options.tail_delay = settings.tail_delay;
    options.daily_write_bytes = settings.daily_write_bytes;
    auto store = Store::open(std::move(files), options, *cache_, pool_);
    if (store) {
      store_ = std::move(*store);
    } else {
      error_ = store.error().message;
    }
  }

  bool is_open() const { return store_ != nullptr; }
  /// Ends the store; the cache stays.
  void close() { store_.reset(); }
  const std::string& error() const { return error_; }
  PromptCache& cache() { return *cache_; }
  Store& store() { return *store_; }
  const ModelKey& key() const { return key_; }
  std::string folder() const { return "v1/" + key_.folder() + "/blocks"; }

  bool wait_for_index() {
    return eventually([&] { return store_->stats().index_complete; });
  }

  /// What a request does: looks up, restores, computes the rest, seals it.
  /// Returns how many tokens it reused.
  std::size_t serve(
      const std::vector<Token>& tokens,
      std::vector<Boundary> boundaries = {},
      const std::optional<BlockId>& below = {}
  ) {
    BlockId root = below.value_or(root_of(key_));
    Restored restored = restore(tokens, below);
    std::size_t full = std::min(restored.tokens, tokens.size()) / kPageTokens;
    Trail trail =
        cache_->start(root, std::span(restored.path).first(full), boundaries);
    BlockId parent = root;
    for (std::size_t at = 0; at < tokens.size(); at += kPageTokens) {
      std::size_t n = std::min(kPageTokens, tokens.size() - at);
      BlockPtr block = make_block(parent, at, std::span(tokens).subspan(at, n));
      if (at >= full * kPageTokens) {
        trail.append(block->tokens, make_page(pool_, key_.layout, *block));
      }
      parent = block->id;
    }
    return restored.tokens;
  }

  /// Looks up and restores; fails the test when a page is wrong.
  Restored restore(
      const std::vector<Token>& tokens,
      const std::optional<BlockId>& below = {},
      double seconds_per_token = 0
  ) {
    std::promise<Restored> promise;
    BlockId root = below.value_or(root_of(key_));
    Match match = cache_->lookup(root, tokens);
    store_->restore(
        {.root = root,
         .prompt = tokens,
         .match = std::move(match),
         .seconds_per_token = seconds_per_token,
         .done = [&](Restored restored
                 ) { promise.set_value(std::move(restored)); }}
    );
    Restored restored = promise.get_future().get();
    check(tokens, restored);
    return restored;
  }

  FlushReport flush() {
    return store_->flush(
        std::chrono::steady_clock::now() + std::chrono::seconds(30)
    );
  }

 private:
  void check(const std::vector<Token>& tokens, const Restored& restored) {
    std::size_t covered = 0;
    EXPECT_LE(restored.tokens, tokens.size());
    for (const PathBlock& item : restored.path) {
      ASSERT_EQ(item.block->start, covered);
      ASSERT_NE(item.page, nullptr);
      EXPECT_TRUE(page_is_right(key_.layout, *item.page, *item.block));
      std::size_t n =
          std::min(item.block->tokens.size(), restored.tokens - covered);
      EXPECT_TRUE(std::equal(
          item.block->tokens.begin(),
          item.block->tokens.begin() + static_cast<std::ptrdiff_t>(n),
          tokens.begin() + static_cast<std::ptrdiff_t>(covered)
      ));
      covered += n;
    }
    EXPECT_EQ(covered, restored.tokens);
  }

  ModelKey key_;
  PagePool pool_;
  std::unique_ptr<PromptCache> cache_;
  std::unique_ptr<Store> store_;  // goes before the cache
  std::string error_;
};

}  // namespace afterglow::testing
