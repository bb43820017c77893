#include "store/store.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <future>
#include <thread>

#include "store/block_index.h"
#include "store/clear.h"
#include "store/context.h"
#include "store/damage.h"
#include "store/directory.h"
#include "store/disk_space.h"
#include "store/io_threads.h"
#include "store/manifest_keeper.h"
#include "store/restorer.h"
#include "store/secret.h"
#include "store/write_loop.h"

namespace afterglow {

namespace {

/// How long opening waits for all files to be known: enough for some hundreds.
constexpr auto kIndexWait = std::chrono::milliseconds(100);

class DiskStore final : public Store {
 public:
  DiskStore(
      std::unique_ptr<FileSystem> files,
      StoreOptions options,
      PromptCache& cache,
      PagePool& pool
  )
      : context_(std::move(files), std::move(options), cache, pool),
        space_(context_),
        damage_(context_, space_),
        index_(context_, damage_),
        manifest_(context_, index_) {}

  ~DiskStore() override {
    context_.stopping = true;
    writer_.reset();
    if (indexer_.joinable()) {
      indexer_.join();
    }
    io_threads_.reset();
  }

  Status start() {
    Status made = make_directories(context_);
    if (!made) {
      // What is there can still be read.
      auto readable = context_.files->list("");
      if (!readable) {
        return readable.error();
      }
      context_.writing_failed(made.error());
    }
    if (context_.files->is_network()) {
      spdlog::warn(
          "[store.open] the prompt cache lies on a network file system, whose "
          "locks and syncs may promise less; a local disk is safer and faster"
      );
    }
    io_threads_ = std::make_unique<IoThreads>(context_.options.io_threads);
    restorer_ = std::make_unique<Restorer>(context_, damage_, *io_threads_);
    indexer_ = std::thread([this] {
      index_.scan(manifest_.load());
      context_.count([](StoreStats& stats) { stats.index_complete = true; });
      indexed_.set_value();
    });
    writer_ = std::make_unique<WriteLoop>(context_, space_, manifest_);
    // Whole blocks are found by their names alone, a last one filled in part
    // is not: a prompt that comes at once, as a command's does, would miss it.
    indexed_.get_future().wait_for(kIndexWait);
    return {};
  }

  void restore(RestoreRequest request) override {
    restorer_->restore(std::move(request));
  }

  FlushReport flush(
      std::chrono::steady_clock::time_point deadline,
      const std::optional<BlockId>& root
  ) override {
    return writer_->flush(deadline, root);
  }

  Result<std::uint64_t> clear(const std::optional<BlockId>& root) override {
    return clear_blocks(context_, space_, manifest_, root);
  }

  Status forget(const EntryRecord& entry) override {
    return manifest_.forget(entry);
  }

  Result<std::string> namespace_secret() override {
    return read_or_make_secret(*context_.files);
  }

  StoreStats stats() const override { return context_.stats(); }

 private:
  StoreContext context_;
  DiskSpace space_;
  DamageControl damage_;
  BlockIndex index_;
  ManifestKeeper manifest_;
  std::unique_ptr<IoThreads> io_threads_;
  std::unique_ptr<Restorer> restorer_;
  std::thread indexer_;
  std::promise<void> indexed_;
  std::unique_ptr<WriteLoop> writer_;
};

}  // namespace

Result<std::unique_ptr<Store>> Store::open(
    std::unique_ptr<FileSystem> files,
    StoreOptions options,
    PromptCache& cache,
    PagePool& pool
) {
  if (!options.layout.cacheable) {
    return Error{
        Code::kUnsupported,
        "[store.open] this model's KV is not determined by its tokens alone; "
        "run it without a cache directory"};
  }
  auto store = std::make_unique<DiskStore>(
      std::move(files), std::move(options), cache, pool
  );
  spdlog::default_logger_raw();  // made before threads race to use it first
  if (Status started = store->start(); !started) {
    return started.error();
  }
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace afterglow
