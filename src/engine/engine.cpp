#include "engine/engine.h"

#include <unistd.h>

#include <functional>
#include <future>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "base/file_system.h"
#include "base/memory_size.h"
#include "base/thread_pool.h"
#include "engine/cache_namespaces.h"
#include "engine/memory_limit.h"
#include "engine/model_runner.h"
#include "engine/prompt_preparer.h"
#include "engine/scheduler.h"
#include "engine/tokenizer_source.h"
#include "engine/workspace.h"
#include "kernels/dispatch/dispatch.h"
#include "model/model.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/mlx/mlx_ops.h"

namespace afterglow {
namespace {

constexpr Activations kDefaultActivations = Activations::kInt16;
constexpr int kMostThreads = 1024;

/// Refuses what would have no effect or no meaning.
Status check(const EngineOptions& options) {
  auto refused = [](const std::string& why) {
    return Error{Code::kInvalidArgument, "[engine.load] " + why};
  };
  if (options.threads < 0 || options.threads > kMostThreads) {
    return refused("threads must be between 0 and 1024");
  }
  if (options.decode_concurrency == 0 || options.prompt_concurrency == 0 ||
      options.prefill_step_size == 0) {
    return refused(
        "decode_concurrency, prompt_concurrency and prefill_step_size must be "
        "at least 1"
    );
  }
  if (options.prompt_cache_ttl.count() < 0) {
    return refused("prompt_cache_ttl must not be negative");
  }
  if (options.backend == Backend::kMlx && options.activations) {
    return refused("activations are the CPU backend's; MLX has its own");
  }
  if (options.prompt_cache_disk_bytes == 0 ||
      options.prompt_cache_daily_writes == 0) {
    return refused(
        "prompt_cache_disk_bytes and prompt_cache_daily_writes must be more "
        "than 0; without a prompt_cache_dir nothing is written"
    );
  }
  if (options.prompt_cache_dir.empty() &&
      (options.prompt_cache_disk_bytes || options.prompt_cache_daily_writes)) {
    return refused(
        "prompt_cache_disk_bytes and prompt_cache_daily_writes need a "
        "prompt_cache_dir"
    );
  }
  return {};
}

/// How far KV is from that of exact arithmetic, on average, about.
double rounding(const EngineOptions& options) {
  if (options.backend == Backend::kMlx) {
    return 0.01;  // 16-bit activations
  }
  switch (options.activations.value_or(kDefaultActivations)) {
    case Activations::kInt8:
      return 0.03;
    case Activations::kInt16:
      return 0.001;
    case Activations::kF32:
      return 0;
  }
  return 0;
}

Result<std::unique_ptr<Ops>> make_ops(
    const EngineOptions& options, ThreadPool& pool
) {
  // Whatever the backend, tokens are drawn with the kernels.
  if (auto kernels = select_kernels(); !kernels) {
    return kernels.error();
  }
  if (options.backend == Backend::kMlx) {
    return make_mlx_ops(pool);
  }
  return make_cpu_ops(pool, options.activations.value_or(kDefaultActivations));
}

class LoadedEngine : public Engine {
 public:
  explicit LoadedEngine(const EngineOptions& options) : options_(options) {}

  ~LoadedEngine() override {
    if (thread_.joinable()) {
      if (scheduler_) {
        scheduler_->stop();
      }
      thread_.join();
    }
    store_.reset();  // its I/O threads call into the scheduler and the cache
  }

  Status start() {
    std::promise<Status> ready;
    std::future<Status> outcome = ready.get_future();
    thread_ = std::thread([this, &ready] {
      bool told = false;  // then ready is no more
      auto tell = [&](Status status) {
        told = true;
        ready.set_value(std::move(status));
      };
      try {
        generate(tell);
      } catch (const std::bad_alloc&) {
        if (told) {
          throw;
        }
        tell(Error{
            Code::kExhausted,
            "[engine.load] the system has no memory for the model"});
      }
    });
    return outcome.get();
  }

  const ModelInfo& info() const override { return info_; }
  const Tokenizer& tokenizer() const override { return *tokenizer_; }

  const AnswerFormat& answer_format() const override { return format_; }

  Result<std::string> render_chat(const ChatInput& chat) const override {
    return preparer_->render(chat);
  }
  Result<PreparedPrompt> prepare_chat(const ChatInput& chat) const override {
    return preparer_->chat(chat);
  }
  Result<PreparedPrompt> prepare_open_chat(
      std::string_view messages_json, std::string_view kwargs_json
  ) const override {
    return preparer_->open_chat(messages_json, kwargs_json);
  }
  Result<PreparedPrompt> prepare_rest_of_chat(
      std::string_view messages_json, std::string_view kwargs_json
  ) const override {
    return preparer_->rest_of_chat(messages_json, kwargs_json);
  }
  Result<PreparedPrompt> prepare_text(std::string_view text) const override {
    return preparer_->text(text);
  }

  Result<RequestId> submit(GenerationRequest request) override {
    request.cache_read = request.cache_read && cacheable_;
    request.cache_store = request.cache_store && cacheable_;
    if (request.history || request.return_history) {
      if (Status ready = prepare_history(request); !ready.ok()) {
        return ready.error();
      }
    }
    return scheduler_->submit(std::move(request));
  }
  void cancel(RequestId id, FinishReason reason) override {
    scheduler_->cancel(id, reason);
  }

  Result<KvHistoryPtr> adopt(const KvHistoryPtr& history) const override {
    if (!cacheable_) {
      return no_histories();
    }
    return adopt_history(history, origin_, layout_, *pool_);
  }
  void choose(RequestId id, TokenOut token) override {
    scheduler_->choose(id, std::move(token));
  }
  KvHistoryPtr history(RequestId id) override {
    return scheduler_->history(id);
  }

  EngineReport report() const override {
    Scheduler::Load load = scheduler_->load();
    EngineReport report;
    report.cache = cache_->stats();
    report.counters = scheduler_->counters();
    if (store_) {
      report.store = store_->stats();
    }
    report.running = load.running;
    report.queued = load.queued;
    return report;
  }

  Status health() const override { return scheduler_->health(); }
  std::chrono::seconds retry_after() const override {
    return scheduler_->retry_after();
  }

  std::string cache_namespace(
      std::string_view api_key, std::string_view cache_key
  ) const override {
    return namespaces_ ? namespaces_->name(api_key, cache_key) : "";
  }
  std::vector<ListedEntry> cache_entries(const std::string& cache_namespace
  ) const override {
    return access_->entries(cache_namespace);
  }
  FlushReport flush(
      std::chrono::steady_clock::time_point deadline,
      const std::string& cache_namespace
  ) override {
    return access_->flush(deadline, cache_namespace);
  }
  Result<Removed> clear_cache(const std::string& cache_namespace) override {
    return access_->clear(cache_namespace);
  }
  Result<Removed> remove_entry(
      const std::string& cache_namespace, const EntryName& name
  ) override {
    return access_->remove(cache_namespace, name);
  }
  Result<EntryRecord> set_pinned(
      const std::string& cache_namespace, const EntryName& name, bool pinned
  ) override {
    return access_->set_pinned(cache_namespace, name, pinned);
  }

  Result<ImportedCache> import_cache(const CacheImport& request) override {
    if (!importer_) {
      return Error{
          Code::kUnsupported,
          "[engine.import] this model's KV is not determined by its tokens "
          "alone, so nothing of it is cached"};
    }
    return importer_->import(request);
  }

  bool shutdown(
      std::chrono::steady_clock::time_point deadline,
      std::chrono::steady_clock::time_point flush_deadline
  ) override {
    scheduler_->close();
    scheduler_->wait_idle(deadline);
    scheduler_->stop();
    if (thread_.joinable()) {
      thread_.join();
    }
    FlushReport report = flush(flush_deadline, "");
    return report.complete && report.failed_blocks == 0;
  }

 private:
  // The generation thread: whatever the backend owns lives and dies here.
  // tell: called once, when it is loaded or cannot be.
  void generate(const std::function<void(Status)>& tell) {
    ThreadPool pool(thread_count(options_.threads));
    Result<std::unique_ptr<Ops>> ops = make_ops(options_, pool);
    if (!ops.ok()) {
      tell(ops.error());
      return;
    }
    Result<LoadedModel> model = load_model(options_.model, **ops);
    if (!model.ok()) {
      tell(model.error());
      return;
    }
    ModelRunner runner(**ops, *model);
    Status opened = open(runner, **ops, *model);
    bool ok = opened.ok();
    tell(std::move(opened));
    if (ok) {
      scheduler_->run();
    }
  }

  Status open(ModelRunner& runner, const Ops& ops, const LoadedModel& model) {
    if (Status text = open_text(model); !text.ok()) {
      return text;
    }
    info_ = describe(ops, model);
    info_.has_chat_template = chat_.has_value();
    cacheable_ = model.layout.cacheable;
    origin_ = {model.fingerprint, model.kv_spec};
    layout_ = model.layout;
    pool_.emplace(runner.pool());
    CacheLimits limits;
    limits.ram_bytes =
        options_.prompt_cache_bytes.value_or(usable_memory() / 4);
    limits.entries =
        options_.prompt_cache_size.value_or(CacheLimits::kUnlimited);
    limits.ttl_ns = options_.prompt_cache_ttl.count();
    bool with_disk = !options_.prompt_cache_dir.empty();
    cache_ = std::make_unique<PromptCache>(
        model.layout.page_bytes(), limits, with_disk
    );
    if (with_disk) {
      if (Status opened = open_store(model); !opened.ok()) {
        return opened;
      }
    }
    if (options_.cache_namespaces) {
      if (Status made = make_namespaces(); !made.ok()) {
        return made;
      }
    }
    const std::uint64_t memory_limit = memory_limit_of(options_);
    Workspace workspace = workspace_of(
        model, options_.prefill_step_size, options_.decode_concurrency
    );
    std::uint64_t fixed = info_.weight_bytes + workspace.steps;
    // What the shortest request takes but for its few tokens.
    std::uint64_t least = workspace.request + model.layout.page_bytes();
    if (memory_limit <= fixed + least) {
      return Error{
          Code::kInvalidArgument,
          "[engine.load] a memory limit of " + std::to_string(memory_limit) +
              " bytes is not more than the model's weights, " +
              std::to_string(info_.weight_bytes) +
              " bytes, what computing needs besides, " +
              std::to_string(workspace.steps) +
              " bytes, and what any request needs, " + std::to_string(least) +
              " bytes"};
    }
    SchedulerOptions options;
    options.fingerprint = model.fingerprint;
    options.spec = model.kv_spec;
    options.decode_concurrency = options_.decode_concurrency;
    options.prompt_concurrency = options_.prompt_concurrency;
    options.queue_limit = options_.queue_limit;
    options.pacing.max_tokens = options_.prefill_step_size;
    options.memory_limit_bytes = memory_limit - fixed;
    options.request_bytes = workspace.request;
    options.kv_outside_pool = options_.backend == Backend::kMlx;
    options.min_match_tokens = limits.min_match_tokens;
    scheduler_ =
        std::make_unique<Scheduler>(runner, *cache_, store_.get(), options);
    access_.emplace(*cache_, store_.get(), [this](const std::string& name) {
      return scheduler_->root_of(name);
    });
    if (cacheable_) {
      importer_.emplace(
          *cache_,
          runner.pool(),
          CacheImporter::Model{
              model.fingerprint,
              model.kv_spec,
              model.vocab_size,
              model.context_length,
              model.layout,
              rounding(options_)},
          [this](auto task) { return scheduler_->post(std::move(task)); }
      );
    }
    return {};
  }

  Status prepare_history(GenerationRequest& request) const {
    if (request.history == nullptr) {
      return cacheable_ ? Status() : Status(no_histories());
    }
    auto adopted = adopt(request.history);
    if (!adopted.ok()) {
      return adopted.error();
    }
    request.history = *std::move(adopted);
    if (unknown_tokens(request.history->tokens) > 0) {
      request.cache_read = false;
      request.cache_store = false;  // blocks are named by their tokens
    }
    return {};
  }

  static Error no_histories() {
    return {
        Code::kUnsupported,
        "[engine.history] this model's KV is not determined by its tokens "
        "alone, so there are no cache histories of it"};
  }

  Status make_namespaces() {
    if (!store_) {
      namespaces_.emplace(CacheNamespaces::random_secret());
      return {};
    }
    Result<std::string> secret = store_->namespace_secret();
    if (!secret.ok()) {
      return secret.error();
    }
    namespaces_.emplace(*std::move(secret));
    return {};
  }

  Status open_text(const LoadedModel& model) {
    const TokenizerSource& source = model.tokenizer;
    Result<Tokenizer> tokenizer = make_tokenizer(source);
    if (!tokenizer.ok()) {
      return tokenizer.error();
    }
    tokenizer_.emplace(std::move(*tokenizer));
    const std::string& chat = options_.chat_template.empty()
                                  ? source.chat_template
                                  : options_.chat_template;
    if (!chat.empty()) {
      Result<ChatTemplate> made = ChatTemplate::create(
          chat, ChatTemplate::SpecialTokens::of(*tokenizer_)
      );
      if (!made.ok()) {
        return made.error();
      }
      chat_.emplace(std::move(*made));
    }
    Result<AnswerFormat> format = make_answer_format(source, chat, *tokenizer_);
    if (!format.ok()) {
      return format.error();
    }
    format_ = *std::move(format);
    preparer_.emplace(*tokenizer_, chat_, format_, model.context_length);
    return {};
  }

  Status open_store(const LoadedModel& model) {
    Result<std::unique_ptr<FileSystem>> files =
        open_posix_file_system(options_.prompt_cache_dir);
    if (!files.ok()) {
      return files.error();
    }
    StoreOptions options;
    options.fingerprint = model.fingerprint;
    options.spec = model.kv_spec;
    options.layout = model.layout;
    options.model_name = model.name;
    options.disk_bytes = options_.prompt_cache_disk_bytes.value_or(0);
    options.daily_write_bytes = options_.prompt_cache_daily_writes.value_or(0);
    Result<std::unique_ptr<Store>> store =
        Store::open(std::move(*files), options, *cache_, *pool_);
    if (!store.ok()) {
      return store.error();
    }
    store_ = std::move(*store);
    return {};
  }

  static ModelInfo describe(const Ops& ops, const LoadedModel& model) {
    ModelInfo info;
    info.name = model.name;
    info.path = model.path;
    info.architecture = model.architecture_name;
    info.quantization = model.quantization;
    info.backend = ops.describe();
    info.vocab_size = model.vocab_size;
    info.context_length = model.context_length;
    info.parameters = model.parameters;
    info.weight_bytes = ops.weight_bytes();
    info.load_seconds = model.load_seconds;
    info.stop_tokens = model.tokenizer.stop_tokens;
    return info;
  }

  const EngineOptions options_;
  ModelInfo info_;
  bool cacheable_ = true;
  KvOrigin origin_;
  KvLayout layout_;
  std::optional<Tokenizer> tokenizer_;
  std::optional<ChatTemplate> chat_;
  AnswerFormat format_;
  std::optional<PromptPreparer> preparer_;
  mutable std::optional<PagePool> pool_;  // the runner's, kept alive
  std::unique_ptr<PromptCache> cache_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Scheduler> scheduler_;
  std::optional<CacheNamespaces> namespaces_;
  std::optional<CacheAccess> access_;
  std::optional<CacheImporter> importer_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Engine>> Engine::load(const EngineOptions& options) {
  if (Status checked = check(options); !checked.ok()) {
    return checked.error();
  }
  auto engine = std::make_unique<LoadedEngine>(options);
  if (Status started = engine->start(); !started.ok()) {
    return started.error();
  }
  for (const std::string& path : options.prompt_cache_files) {
    auto imported = engine->import_cache({.path = path});
    if (!imported.ok()) {
      return imported.error();
    }
  }
  return std::unique_ptr<Engine>(std::move(engine));
}

}  // namespace afterglow
