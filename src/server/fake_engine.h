#pragma once

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/cache_access.h"
#include "engine/cache_namespaces.h"
#include "engine/engine.h"

namespace afterglow::testing {

/// A tokenizer whose ids 0..255 are the bytes; 256 and 257 are special.
inline Tokenizer byte_tokenizer() {
  using json = nlohmann::ordered_json;
  // GPT-2's printable stand-ins for bytes.
  const auto stand_in = [](int byte) {
    const auto plain = [](int b) {
      return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    };
    int code = byte;
    if (!plain(byte)) {
      code = 256;
      for (int b = 0; b < byte; ++b) code += !plain(b);
    }
    std::string utf8;
    if (code < 0x80) {
      utf8 += static_cast<char>(code);
    } else {
      utf8 += static_cast<char>(0xC0 | (code >> 6));
      utf8 += static_cast<char>(0x80 | (code & 0x3F));
    }
    return utf8;
  };
  json vocab = json::object();
  for (int byte = 0; byte < 256; ++byte) vocab[stand_in(byte)] = byte;
  json added = json::array();
  for (int id : {256, 257}) {
    added.push_back(
        {{"id", id},
         {"content", id == 256 ? "<|im_start|>" : "<|im_end|>"},
         {"single_word", false},
         {"lstrip", false},
         {"rstrip", false},
         {"normalized", false},
         {"special", true}}
    );
  }
  const json byte_level = {
      {"type", "ByteLevel"},
      {"add_prefix_space", false},
      {"trim_offsets", true},
      {"use_regex", true}};
  const json tokenizer = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added},
      {"normalizer", nullptr},
      {"pre_tokenizer", byte_level},
      {"post_processor", nullptr},
      {"decoder", byte_level},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", nullptr},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", false},
        {"byte_fallback", false},
        {"vocab", vocab},
        {"merges", json::array()}}}};
  auto made =
      Tokenizer::from_json(tokenizer.dump(), R"({"eos_token": "<|im_end|>"})");
  return *std::move(made);
}

/// What the fake does with one request.
struct Script {
  std::string text;           // its tokens are the bytes
  bool endless = false;       // repeats the text until cancelled
  bool hold = false;          // sends nothing until cancelled
  std::size_t progress = 0;   // Progress events before the first token
  std::size_t cached = 0;     // of the prompt's tokens, from RAM
  std::optional<Error> fail;  // after the text
};

/// An engine without a model: answers by script, all requests in turn on one
/// thread, as the real one does.
class FakeEngine : public Engine {
 public:
  using Scripter = std::function<Script(const GenerationRequest&)>;

  explicit FakeEngine(Scripter scripter)
      : scripter_(std::move(scripter)), thread_([this] { loop(); }) {
    info_.name = "fake";
    info_.vocab_size = 258;
    info_.context_length = 4096;
    info_.stop_tokens = {257};
  }
  ~FakeEngine() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  const ModelInfo& info() const override { return info_; }
  const Tokenizer& tokenizer() const override { return tokenizer_; }

  const AnswerFormat& answer_format() const override { return format; }

  Result<std::string> render_chat(const ChatInput& chat) const override {
    return std::string(chat.messages);
  }
  Result<PreparedPrompt> prepare_chat(const ChatInput& chat) const override {
    auto prepared = prepare_text(chat.messages);
    if (prepared.ok()) prepared->begins = format.begins_after(chat.messages);
    return prepared;
  }
  Result<PreparedPrompt> prepare_open_chat(
      std::string_view messages_json, std::string_view
  ) const override {
    return prepare_text(messages_json);
  }
  Result<PreparedPrompt> prepare_rest_of_chat(
      std::string_view messages_json, std::string_view
  ) const override {
    return prepare_text(messages_json);
  }
  Result<PreparedPrompt> prepare_text(std::string_view text) const override {
    auto tokens = tokenizer_.encode(text, false, false);
    if (!tokens.ok()) return tokens.error();
    return PreparedPrompt{.tokens = *std::move(tokens), .boundaries = {}};
  }

  Result<RequestId> submit(GenerationRequest request) override {
    if (request.prompt.empty()) {
      return Error{Code::kInvalidArgument, "[engine.submit] empty prompt"};
    }
    for (const Token token : request.prompt) {
      if (static_cast<std::size_t>(token) < info_.vocab_size) continue;
      return Error{Code::kInvalidArgument, "[engine.submit] unknown token"};
    }
    if (auto status = validate(request.sampling, info_.vocab_size);
        !status.ok()) {
      return status.error();
    }
    const std::lock_guard lock(mutex_);
    if (refusal) return *refusal;
    if (refuse_after && submitted_++ >= *refuse_after) {
      return Error{Code::kOverloaded, "[engine.submit] no more"};
    }
    const RequestId id = next_id_++;
    Script script = scripter_(request);
    remember(request);
    last_request_ = request;
    last_request_->sink = nullptr;
    active_.emplace(id, Active{std::move(request), std::move(script)});
    changed_.notify_all();
    count_changed_.notify_all();
    return id;
  }
  void cancel(RequestId id, FinishReason reason) override {
    const std::lock_guard lock(mutex_);
    cancelled_.emplace(id, reason);
    changed_.notify_all();
  }

  Result<KvHistoryPtr> adopt(const KvHistoryPtr& history) const override {
    return history;
  }
  void choose(RequestId, TokenOut) override {}
  KvHistoryPtr history(RequestId) override { return nullptr; }

  EngineReport report() const override {
    EngineReport report;
    report.cache = cache_.stats();
    report.counters = counters;
    report.store = store;
    const std::lock_guard lock(mutex_);
    report.running = active_.size();
    return report;
  }
  Status health() const override {
    const std::lock_guard lock(mutex_);
    return failure ? Status(*failure) : Status();
  }
  std::chrono::seconds retry_after() const override {
    return wait_before_retry;
  }
  std::string cache_namespace(
      std::string_view api_key, std::string_view cache_key
  ) const override {
    return namespaces ? namespaces->name(api_key, cache_key) : "";
  }
  std::vector<ListedEntry> cache_entries(const std::string& cache_namespace
  ) const override {
    return access_.entries(cache_namespace);
  }
  FlushReport flush(
      std::chrono::steady_clock::time_point, const std::string& cache_namespace
  ) override {
    const std::lock_guard lock(mutex_);
    flushed_.push_back(cache_namespace);
    return {.durable_blocks = 7, .failed_blocks = 0, .complete = true};
  }
  Result<Removed> clear_cache(const std::string& cache_namespace) override {
    return access_.clear(cache_namespace);
  }
  Result<Removed> remove_entry(
      const std::string& cache_namespace, const EntryName& name
  ) override {
    return access_.remove(cache_namespace, name);
  }
  Result<EntryRecord> set_pinned(
      const std::string& cache_namespace, const EntryName& name, bool pinned
  ) override {
    return access_.set_pinned(cache_namespace, name, pinned);
  }
  Result<ImportedCache> import_cache(const CacheImport&) override {
    return Error{Code::kUnsupported, "a fake engine imports nothing"};
  }
  bool shutdown(
      std::chrono::steady_clock::time_point,
      std::chrono::steady_clock::time_point
  ) override {
    return true;
  }

  /// Waits until no request runs; false after half a minute.
  bool wait_idle() { return wait_running(0); }
  bool wait_running(std::size_t count) {
    std::unique_lock lock(mutex_);
    return count_changed_.wait_for(lock, std::chrono::seconds(30), [&] {
      return active_.size() == count;
    });
  }
  GenerationRequest last_request() const {
    const std::lock_guard lock(mutex_);
    return *last_request_;
  }
  std::size_t cancels() const {
    const std::lock_guard lock(mutex_);
    return cancels_;
  }
  /// The namespaces of all flushes.
  std::vector<std::string> flushed() const {
    const std::lock_guard lock(mutex_);
    return flushed_;
  }

  // Set before requests come.
  AnswerFormat format;
  std::optional<Error> refusal;
  std::optional<std::size_t> refuse_after;  // so many requests
  std::optional<Error> failure;             // what health() tells
  std::chrono::seconds wait_before_retry{1};
  std::optional<CacheNamespaces> namespaces;
  EngineCounters counters;
  std::optional<StoreStats> store;

 private:
  static BlockId root_of(const std::string& cache_namespace) {
    return root_id({}, {}, cache_namespace);
  }
  struct Active {
    GenerationRequest request;
    Script script;
    std::size_t sent = 0;
    std::size_t progress = 0;
  };

  /// Keeps the prompt in the cache, with pages that nobody looks at.
  void remember(const GenerationRequest& request) {
    if (!request.cache_store) return;
    Trail trail = cache_.start(root_of(request.cache_namespace), {}, {});
    std::span<const Token> rest(request.prompt);
    while (!rest.empty()) {
      const std::size_t count = std::min(rest.size(), kPageTokens);
      trail.append(rest.first(count), pool_.make());
      rest = rest.subspan(count);
    }
  }

  bool has_work() const {
    for (const auto& [id, active] : active_) {
      if (!active.script.hold || cancelled_.contains(id)) return true;
    }
    return false;
  }

  void loop() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stopping_ || has_work(); });
      if (stopping_) return;
      for (auto at = active_.begin(); at != active_.end();) {
        std::optional<FinishReason> cancelled;
        if (const auto found = cancelled_.find(at->first);
            found != cancelled_.end()) {
          cancelled = found->second;
        }
        const bool over = step(at->second, cancelled);
        cancels_ += over && cancelled == FinishReason::kCancelled;
        at = over ? active_.erase(at) : std::next(at);
      }
      count_changed_.notify_all();
      // Lets callers in between two steps.
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
  }

  // True when the request is over.
  static bool step(Active& active, std::optional<FinishReason> cancelled) {
    const Script& script = active.script;
    EventSink& sink = *active.request.sink;
    if (cancelled) {
      finish(active, *cancelled);
      return true;
    }
    if (script.hold) return false;
    const std::size_t total = active.request.prompt.size();
    if (active.progress < script.progress) {
      ++active.progress;
      return !sink.send(Progress{
          total * active.progress / script.progress, total});
    }
    const bool more = script.endless || active.sent < script.text.size();
    if (more && active.sent < active.request.max_tokens) {
      return !sink.send(
          token(active, script.text[active.sent++ % script.text.size()])
      );
    }
    if (script.fail) {
      (void)sink.send(Failed{*script.fail});
    } else {
      finish(active, more ? FinishReason::kLength : FinishReason::kStop);
    }
    return true;
  }

  static TokenOut token(const Active& active, char byte) {
    TokenOut out;
    out.token = static_cast<unsigned char>(byte);
    out.logprob = -0.5F;
    for (std::size_t i = 0; i < active.request.top_logprobs; ++i) {
      out.top_logprobs.push_back(
          {static_cast<Token>((out.token + static_cast<int>(i)) % 256),
           -0.5F - static_cast<float>(i)}
      );
    }
    return out;
  }

  static void finish(Active& active, FinishReason reason) {
    Finished finished;
    finished.reason = reason;
    Timings& timings = finished.timings;
    timings.cache_n = timings.cache_ram_n = active.script.cached;
    timings.prompt_n = active.request.prompt.size() - active.script.cached;
    timings.prompt_ms = 4;
    timings.predicted_n = active.sent;
    timings.predicted_ms = 2;
    timings.cache_store = active.request.cache_store;
    (void)active.request.sink->send(finished);
  }

  const Scripter scripter_;
  const Tokenizer tokenizer_ = byte_tokenizer();
  ModelInfo info_;
  static constexpr std::size_t kPageBytes = 4096;
  PagePool pool_{kPageBytes};
  PromptCache cache_{kPageBytes, {}, /*with_disk=*/false};
  CacheAccess access_{cache_, nullptr, root_of};

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable count_changed_;
  bool stopping_ = false;
  RequestId next_id_ = 1;
  std::size_t submitted_ = 0;
  std::map<RequestId, Active> active_;
  std::map<RequestId, FinishReason> cancelled_;
  std::vector<std::string> flushed_;
  std::size_t cancels_ = 0;
  std::optional<GenerationRequest> last_request_;
  std::thread thread_;
};

}  // namespace afterglow::testing
