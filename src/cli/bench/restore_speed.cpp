#include "cli/bench/restore_speed.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <future>
#include <memory>
#include <random>
#include <thread>

#include "base/file_system.h"
#include "cli/bench/cold_read.h"
#include "kv/prompt_cache.h"
#include "store/block_format.h"
#include "store/disk_files.h"
#include "store/store.h"

namespace afterglow {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBlocksAtOnce = 32;
constexpr auto kFlushTime = std::chrono::minutes(5);
constexpr int kVocabulary = 49152;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// A new folder that goes with the object.
class Folder {
 public:
  explicit Folder(const std::string& parent)
      : path_(parent + "/afterglow-bench-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

StoreOptions store_options(int io_threads) {
  StoreOptions options;
  options.layout.layers.assign(30, LayerKv{3, 64, 64, KvType::kF16, 0});
  options.fingerprint.fill(1);
  options.spec.fill(2);
  options.model_name = "random KV of afterglow bench";
  options.disk_bytes = CacheLimits::kUnlimited;
  options.io_threads = io_threads;
  return options;
}

/// What a server has of the directory.
struct Instance {
  Instance(StoreOptions store_options, std::size_t ram_blocks)
      : options(std::move(store_options)),
        pool(options.layout.page_bytes()),
        root(root_id(options.fingerprint, options.spec, "")),
        cache(
            options.layout.page_bytes(),
            limits(ram_blocks * options.layout.page_bytes()),
            true
        ) {}

  static CacheLimits limits(std::uint64_t ram_bytes) {
    CacheLimits limits;
    limits.ram_bytes = ram_bytes;
    return limits;
  }

  Status open(const std::string& path) {
    auto files = open_posix_file_system(path);
    if (!files) return files.error();
    auto opened = Store::open(std::move(*files), options, cache, pool);
    if (!opened) return opened.error();
    store = std::move(*opened);
    return {};
  }

  StoreOptions options;
  PagePool pool;
  BlockId root;
  PromptCache cache;
  std::unique_ptr<Store> store;
};

std::vector<Token> random_tokens(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Token> tokens(count);
  for (Token& token : tokens) {
    token = static_cast<Token>(random() % kVocabulary);
  }
  return tokens;
}

/// Seals a prompt of random KV and makes it durable; returns the seconds that
/// the store took.
Result<double> write_prompt(
    Instance& instance, const std::vector<Token>& tokens
) {
  std::mt19937_64 random(tokens.size());
  std::vector<PagePtr> pages;
  for (std::size_t at = 0; at < tokens.size(); at += kPageTokens) {
    std::shared_ptr<Page> page = instance.pool.make();
    for (std::size_t b = 0; b + 8 <= page->size(); b += 8) {
      const std::uint64_t value = random();
      std::memcpy(page->data() + b, &value, 8);
    }
    pages.push_back(std::move(page));
  }
  const auto begin = Clock::now();
  {
    Trail trail = instance.cache.start(instance.root, {}, {});
    for (std::size_t i = 0; i < pages.size(); ++i) {
      trail.append(
          std::span(tokens).subspan(i * kPageTokens, kPageTokens), pages[i]
      );
    }
  }
  const FlushReport report = instance.store->flush(Clock::now() + kFlushTime);
  if (!report.complete || report.failed_blocks > 0) {
    return Error{
        Code::kNoSpace,
        "[bench.restore] the blocks could not be written: " +
            instance.store->stats().last_error};
  }
  return seconds_since(begin);
}

class Bench {
 public:
  Bench(const RestoreBenchOptions& options, std::string path)
      : options_(options),
        path_(std::move(path)),
        prompt_(random_tokens(options.blocks * kPageTokens, 7)) {}

  Result<RestoreBenchReport> run() {
    if (Status written = write(); !written) return written.error();
    bool may_be_cold = true;
    for (int round = 0; round < options_.rounds; ++round) {
      if (may_be_cold) {
        Status cold = measure_cold();
        if (!cold && cold.error().code != Code::kUnsupported) {
          return cold.error();
        }
        may_be_cold = cold.ok();
        if (!cold) report_.cold_note = cold.error().message;
      }
      // The cold round has brought the files back into the page cache.
      auto warm = restore();
      if (!warm) return warm.error();
      report_.warm.push_back(*warm);
    }
    return report_;
  }

 private:
  Status write() {
    const StoreOptions options = store_options(options_.io_threads);
    Instance instance(options, options_.blocks);
    if (Status opened = instance.open(path_); !opened) return opened;
    auto took = write_prompt(instance, prompt_);
    if (!took) return took.error();
    report_.prompt_bytes = instance.store->stats().written_bytes;
    report_.write = static_cast<double>(report_.prompt_bytes) / 1e9 / *took;
    const ModelKey key{options.fingerprint, options.spec, options.layout};
    BlockId parent = instance.root;
    for (std::size_t at = 0; at < prompt_.size(); at += kPageTokens) {
      parent =
          block_id(parent, at, std::span(prompt_).subspan(at, kPageTokens));
      files_.push_back(path_ + "/" + block_path(key.folder(), parent));
    }
    for (std::uint32_t seed = 8;
         instance.store->stats().written_bytes < options_.start_bytes;
         ++seed) {
      auto more = write_prompt(
          instance, random_tokens(kBlocksAtOnce * kPageTokens, seed)
      );
      if (!more) return more.error();
    }
    const StoreStats stats = instance.store->stats();
    report_.stored_bytes = stats.written_bytes;
    report_.stored_blocks = stats.written_blocks;
    return {};
  }

  Status measure_cold() {
    if (Status dropped = drop_from_page_cache(files_); !dropped) {
      return dropped;
    }
    auto disk = plain_read_speed(files_, options_.io_threads);
    if (!disk) return disk.error();
    if (Status dropped = drop_from_page_cache(files_); !dropped) {
      return dropped;
    }
    auto cold = restore();
    if (!cold) return cold.error();
    report_.disk.push_back(*disk);
    report_.cold.push_back(*cold);
    return {};
  }

  /// Starts as a server does and restores the prompt; gigabytes a second.
  Result<double> restore() {
    Instance instance(store_options(options_.io_threads), options_.blocks);
    auto begin = Clock::now();
    if (Status opened = instance.open(path_); !opened) return opened.error();
    report_.open.push_back(seconds_since(begin));
    while (!instance.store->stats().index_complete) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    report_.index.push_back(seconds_since(begin));
    begin = Clock::now();
    std::promise<Restored> promise;
    instance.store->restore(
        {instance.root,
         prompt_,
         instance.cache.lookup(instance.root, prompt_),
         0,
         [&](Restored restored) { promise.set_value(std::move(restored)); }}
    );
    const Restored restored = promise.get_future().get();
    const double took = seconds_since(begin);
    if (restored.disk_tokens != prompt_.size()) {
      return Error{
          Code::kIo,
          "[bench.restore] only " + std::to_string(restored.disk_tokens) +
              " of " + std::to_string(prompt_.size()) +
              " tokens came from the disk"};
    }
    return static_cast<double>(report_.prompt_bytes) / 1e9 / took;
  }

  const RestoreBenchOptions options_;
  const std::string path_;
  const std::vector<Token> prompt_;
  std::vector<std::string> files_;  // of the prompt's blocks
  RestoreBenchReport report_;
};

}  // namespace

Result<RestoreBenchReport> run_restore_bench(const RestoreBenchOptions& options
) {
  Folder folder(options.directory);
  if (folder.path().empty()) {
    return Error{
        Code::kIo,
        "[bench.restore] no folder can be made in " + options.directory + ": " +
            std::strerror(errno)};
  }
  return Bench(options, folder.path()).run();
}

}  // namespace afterglow
