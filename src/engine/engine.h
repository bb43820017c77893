#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "afterglow/model.h"
#include "base/result.h"
#include "engine/cache_access.h"
#include "engine/cache_import.h"
#include "engine/engine_counters.h"
#include "engine/request.h"
#include "kv/entry_name.h"
#include "kv/prompt_cache.h"
#include "ops/numerics.h"
#include "store/store.h"
#include "text/answer_format.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace afterglow {

/// What serving takes besides.
struct EngineOptions : LoadOptions {
  std::string model;              // a GGUF file or a model directory
  bool cache_namespaces = false;  // clients do not share cached prompts
  /// Prompt-cache files that tell their tokens (exported ones), taken in and
  /// pinned at load.
  std::vector<std::string> prompt_cache_files;
  std::size_t decode_concurrency = 32;
  std::size_t prompt_concurrency = 8;
  std::size_t queue_limit = 256;  // requests that wait, beyond the running
  /// Prompt tokens a step reads at most. How many it reads of these is a
  /// matter of time; answers do not depend on it.
  std::size_t prefill_step_size = 128;
};

/// A conversation, as JSON text; what is empty is absent.
struct ChatInput {
  std::string_view messages;        // OpenAI's, content is text or null
  std::string_view tools = {};      // OpenAI's, an array
  std::string_view variables = {};  // further ones of the template, an object
  /// For models without a template: what stands before the text of each role
  /// and, as "stop", behind it, an object. Source: mlx_lm.server
  std::string_view role_mapping = {};
};

/// A prompt in tokens, with its ends worth keeping.
struct PreparedPrompt {
  /// More than the model's context holds: some of them, which count for
  /// nothing else.
  std::vector<Token> tokens;
  std::vector<Boundary> boundaries;
  AnswerPart begins = AnswerPart::kContent;  // what its answer begins with
};

struct EngineReport {
  CacheStats cache;
  EngineCounters counters;
  std::optional<StoreStats> store;
  std::size_t running = 0;
  std::size_t queued = 0;
};

/// A loaded model with its cache, store and generation thread. One a process.
/// Thread: all members safe from any thread.
class Engine {
 public:
  /// Loads the model (on the generation thread) and opens the cache. Blocks
  /// until ready. A cache directory or a prompt-cache file that cannot be used
  /// is an error here.
  static Result<std::unique_ptr<Engine>> load(const EngineOptions& options);
  virtual ~Engine() = default;  // cuts what still runs; does not flush

  virtual const ModelInfo& info() const = 0;
  virtual const Tokenizer& tokenizer() const = 0;

  /// How the model's answers are to be taken apart.
  virtual const AnswerFormat& answer_format() const = 0;

  /// The text that the chat template makes of a conversation, the answer's
  /// beginning included.
  /// Errors: kInvalidArgument with the template's own message; kUnsupported
  /// for tools that it leaves out and for a role mapping beside a template.
  /// Thread: takes milliseconds for long prompts; not for I/O threads.
  virtual Result<std::string> render_chat(const ChatInput& chat) const = 0;
  /// That text in tokens. Errors and threads: as render_chat.
  virtual Result<PreparedPrompt> prepare_chat(const ChatInput& chat) const = 0;
  /// The same up to the last message's content, which can go on from there:
  /// the prompt whose cache mlx_lm.cache_prompt makes.
  virtual Result<PreparedPrompt> prepare_open_chat(
      std::string_view messages_json, std::string_view kwargs_json
  ) const = 0;
  /// What follows an open chat: the last message's content from its start to
  /// the prompt's end, as mlx_lm.generate continues a prompt-cache file. A
  /// last message of the assistant is the answer's beginning: it stays open,
  /// and the message before it is the one meant.
  virtual Result<PreparedPrompt> prepare_rest_of_chat(
      std::string_view messages_json, std::string_view kwargs_json
  ) const = 0;
  /// Tokenizes plain text as mlx_lm does for completions: special tokens of
  /// the model's own are added. Errors: kInvalidArgument for bad UTF-8.
  virtual Result<PreparedPrompt> prepare_text(std::string_view text) const = 0;

  /// Queues the request. Events come to its sink until Finished or Failed.
  /// Errors: kInvalidArgument (empty prompt, token out of range, longer than
  /// the context, sampling out of range, a history of another model),
  /// kOverloaded (queue full), kExhausted (never fits into the memory limit),
  /// kUnavailable (shutting down or failed).
  virtual Result<RequestId> submit(GenerationRequest request) = 0;
  /// Ends the request soon; its sink gets Finished with that reason unless it
  /// has ended already. An unknown id is ignored.
  virtual void cancel(
      RequestId id, FinishReason reason = FinishReason::kCancelled
  ) = 0;

  /// The history in the form that requests take; submit does that, too.
  /// Errors: those of adopt_history; kUnsupported when the model's KV is not
  /// determined by its tokens.
  virtual Result<KvHistoryPtr> adopt(const KvHistoryPtr& history) const = 0;
  /// The next token of a request with a logits sink that waits for it; comes
  /// back to its event sink unless it is a stop token. A request that has
  /// ended is ignored. Requires: the token is in the vocabulary.
  virtual void choose(RequestId id, TokenOut token) = 0;
  /// What a request with return_history has read and written so far. Null
  /// before its first step and when it has ended. Waits for the step at hand.
  virtual KvHistoryPtr history(RequestId id) = 0;

  virtual EngineReport report() const = 0;
  /// Whether requests are being worked on. Errors: kUnavailable, saying what
  /// ended the generation thread, or how long it has been in one step by now
  /// when no step should last so long. Takes microseconds.
  virtual Status health() const = 0;
  /// When a client that was refused for want of a place should try again: an
  /// estimate from what ended lately, at least a second.
  virtual std::chrono::seconds retry_after() const = 0;

  // The cache. What takes a namespace sees only what lies in it; "" is the
  // whole cache. They may wait for the disk: not for I/O threads.

  /// The namespace of clients with that API key and prompt_cache_key. "" for
  /// all clients unless the engine was loaded with cache_namespaces. Nobody
  /// can tell keys from it who lacks the secret of the cache directory.
  virtual std::string cache_namespace(
      std::string_view api_key, std::string_view cache_key
  ) const = 0;
  /// Oldest first within their type.
  virtual std::vector<ListedEntry> cache_entries(
      const std::string& cache_namespace
  ) const = 0;
  /// Makes all sealed blocks durable. Without a store: complete, nothing.
  virtual FlushReport flush(
      std::chrono::steady_clock::time_point deadline,
      const std::string& cache_namespace
  ) = 0;
  /// Removes all that no running request uses, pinned entries included, from
  /// memory and disk. Errors: the file system's.
  virtual Result<Removed> clear_cache(const std::string& cache_namespace) = 0;
  /// Removes one entry, pinned or not, with the blocks that only it covers.
  /// Errors: kNotFound; kInvalidArgument when several entries have that name;
  /// kUnavailable while a request is making it.
  virtual Result<Removed> remove_entry(
      const std::string& cache_namespace, const EntryName& name
  ) = 0;
  /// Pins or unpins one entry and returns it. Errors: kNotFound;
  /// kInvalidArgument when several entries have that name.
  virtual Result<EntryRecord> set_pinned(
      const std::string& cache_namespace, const EntryName& name, bool pinned
  ) = 0;

  /// Takes a prompt-cache file of mlx_lm or of ours in; see CacheImporter.
  virtual Result<ImportedCache> import_cache(const CacheImport& request) = 0;

  /// Refuses new requests, lets running ones end until the deadline, cuts the
  /// rest (sealing what they computed), then flushes until flush_deadline.
  /// False: some of the prompt cache did not reach the disk.
  virtual bool shutdown(
      std::chrono::steady_clock::time_point deadline,
      std::chrono::steady_clock::time_point flush_deadline
  ) = 0;
};

}  // namespace afterglow
