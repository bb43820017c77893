#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "afterglow/export.h"
#include "afterglow/types.h"

namespace afterglow {

/// How a model is loaded and what is kept of its prompts.
struct LoadOptions {
  Backend backend = Backend::kCpu;         ///< what computes
  std::optional<Activations> activations;  ///< of the CPU; default kInt16
  int threads = 0;                         ///< 0: one for each core
  std::string chat_template;               ///< empty: the model's own
  std::string prompt_cache_dir;            ///< empty: no disk
  std::optional<std::uint64_t> prompt_cache_bytes;  ///< RAM; default 25 %
  std::optional<std::uint64_t> prompt_cache_size;   ///< entries; default none
  /// Default: 20 GiB or 10 % of what is free.
  std::optional<std::uint64_t> prompt_cache_disk_bytes;
  /// Bytes that all processes on the directory write a day; default: no limit.
  std::optional<std::uint64_t> prompt_cache_daily_writes;
  std::chrono::nanoseconds prompt_cache_ttl{
      0};                                     ///< since the last use; 0: ever
  std::optional<std::uint64_t> memory_limit;  ///< default 80 % of memory
};

/// How a download goes on. Sizes in bytes; total is 0 while it is not known.
struct DownloadProgress {
  std::string_view file;    ///< its name in the repository
  std::uint64_t done = 0;   ///< bytes that are here
  std::uint64_t total = 0;  ///< bytes of the file
};

/// What is known of a loaded model.
struct ModelInfo {
  std::string name;                ///< of its file or folder
  std::string path;                ///< where it was loaded from
  std::string architecture;        ///< "llama", ...
  std::string quantization;        ///< "Q4_1", "4 bits", ...
  std::string backend;             ///< "cpu int16", ...
  std::size_t vocab_size = 0;      ///< tokens
  std::size_t context_length = 0;  ///< tokens
  std::uint64_t parameters = 0;    ///< weights, counted
  std::uint64_t weight_bytes = 0;  ///< in memory
  double load_seconds = 0;         ///< from the call to ready
  std::vector<Token> stop_tokens;  ///< those that end an answer
  bool has_chat_template = false;  ///< its own, or one it was loaded with
};

/// One message of a chat. Roles are those of the model's template: "system",
/// "user", "assistant".
struct Message {
  std::string role;     ///< who speaks
  std::string content;  ///< what
};

/// What to continue: text, which is tokenized as mlx_lm does (the model's own
/// special tokens are added), or tokens. Always the full prompt: what is
/// already known of it is found, never declared.
class AFTERGLOW_API Prompt {
 public:
  /// UTF-8.
  Prompt(std::string text);
  /// The same.
  Prompt(const char* text) : Prompt(std::string(text)) {}
  /// system_tokens: how many of them are a system prompt, which the prompt
  /// cache keeps longer than what follows.
  Prompt(std::vector<Token> tokens, std::size_t system_tokens = 0);

  /// None: text that is tokenized when it is used.
  const std::optional<std::vector<Token>>& tokens() const { return tokens_; }
  /// Empty where there are tokens.
  const std::string& text() const { return text_; }
  /// How many of the tokens are a system prompt.
  std::size_t system_tokens() const { return system_tokens_; }

 private:
  std::string text_;
  std::optional<std::vector<Token>> tokens_;
  std::size_t system_tokens_ = 0;
};

/// @cond
class CacheHistory;
class ModelState;
/// @endcond

/// A loaded model with its tokenizer, prompt cache and generation thread: a
/// handle, whose copies are the same model. The last handle, generation or
/// history's stream to go ends the thread and makes the prompt cache durable.
/// Thread: all members are safe from any thread.
class AFTERGLOW_API Model {
 public:
  /// Valid while a handle lives.
  const ModelInfo& info() const;

  /// Text to tokens. add_special_tokens: as the tokenizer does for plain text
  /// (a token for the beginning, with most models).
  /// Throws: kInvalidArgument for text that is not UTF-8.
  std::vector<Token> encode(
      std::string_view text, bool add_special_tokens = true
  ) const;
  /// Tokens to text, special tokens left out unless asked for.
  /// Throws: kInvalidArgument for tokens that the vocabulary has not.
  std::string decode(
      std::span<const Token> tokens, bool skip_special_tokens = true
  ) const;

  /// The prompt of a chat by the model's template, ready for the answer.
  /// Throws: kInvalidArgument with the template's own message.
  /// variables_json: an object of further variables of the template, or "".
  Prompt apply_chat_template(
      std::span<const Message> messages, std::string_view variables_json = {}
  ) const;
  /// The same for everything a template takes, as JSON: an array of OpenAI
  /// messages, an array of tools or "", an object of further variables or "".
  Prompt apply_chat_template(
      std::string_view messages_json,
      std::string_view tools_json,
      std::string_view variables_json = {}
  ) const;
  /// A chat's prompt that ends inside its last message, which can go on from
  /// there: an answer whose beginning is given, or what mlx_lm.cache_prompt
  /// caches.
  Prompt open_chat_prompt(
      std::span<const Message> messages, std::string_view variables_json = {}
  ) const;
  /// What follows open_chat_prompt's end: the last message from its start on
  /// and what the template puts behind it, as mlx_lm.generate continues a
  /// prompt-cache file. A last message of the assistant is the beginning of
  /// the answer: it stays open, and the message before it is the one meant.
  Prompt rest_of_chat_prompt(
      std::span<const Message> messages, std::string_view variables_json = {}
  ) const;

  /// Throws what continuing the history would throw for it: kInvalidArgument
  /// for another model's, kCorrupt, kUnsupported.
  void check(const CacheHistory& history) const;

  /// Ends what still runs and writes the prompt cache to its directory for at
  /// most that long. False: some of it did not reach the disk; again is
  /// allowed. Afterwards generating throws kUnavailable. Called by the last
  /// handle, too.
  bool close(std::chrono::nanoseconds write_time = std::chrono::seconds(30));

  /// @cond
  // For the functions of this library.
  explicit Model(std::shared_ptr<ModelState> state);
  const std::shared_ptr<ModelState>& state() const { return state_; }
  /// @endcond

 private:
  std::shared_ptr<ModelState> state_;
};

/// Loads a model: a GGUF file, a directory with safetensors, or the name of
/// one on the Hugging Face hub ("org/name"), which is downloaded unless it is
/// in the hub's cache. Blocks until the model is ready.
/// Throws: kNotFound, kUnsupported, kCorrupt, kIo and others, saying what is
/// wrong with which file; kCancelled.
AFTERGLOW_API Model load(
    const std::string& path_or_hub_id,
    const LoadOptions& options = {},
    const std::function<void(const DownloadProgress&)>& progress = {},
    std::stop_token cancel = {}
);

}  // namespace afterglow
