#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/kv_layout.h"
#include "base/result.h"
#include "ops/ops.h"

namespace afterglow {

/// A network written in Ops: one per model family, in
/// model/architectures/<model_type>.cpp. Holds weight ids, no weights.
class Architecture {
 public:
  virtual ~Architecture() = default;

  /// Runs all layers over the batch. Returns the hidden state after the last
  /// norm, [T, hidden]. Where batch.cancelled(), returns early with a value
  /// that must not be used. Requires: between ops.begin and ops.end.
  virtual Value forward(Ops& ops, const Batch& batch) const = 0;

  virtual LinearId head() const = 0;
  virtual float logit_softcap() const { return 0; }
};

/// Where a model's tokenizer comes from; made by the reader of its files and
/// turned into a Tokenizer by the engine.
struct TokenizerSource {
  // From a directory in HF layout:
  std::string tokenizer_json;
  std::string tokenizer_config_json;
  // From GGUF metadata, by its key without the "tokenizer.ggml." prefix:
  bool is_gguf = false;
  std::string gguf_model;  // "gpt2", "llama", ...
  std::string gguf_pre;
  std::vector<std::string> tokens;
  std::vector<std::string> merges;
  std::vector<float> scores;
  std::vector<std::int32_t> token_types;
  std::optional<bool> add_bos, add_eos, add_space_prefix;
  std::optional<Token> bos, eos, eot, unknown, padding;
  // Either way:
  std::string chat_template;       // empty: none
  std::vector<Token> stop_tokens;  // all that end a generation
};

/// A model ready to run.
struct LoadedModel {
  std::string path;
  std::string name;               // file stem or directory name
  std::string architecture_name;  // "llama"
  std::size_t vocab_size = 0;
  std::size_t context_length = 0;
  std::uint64_t parameters = 0;
  std::string quantization;  // "Q4_1", "4-bit group 64", "F16"
  KvLayout layout;
  std::unique_ptr<Architecture> architecture;
  TokenizerSource tokenizer;
  /// SHA-256 over the XXH3-128 of each weight tensor's bytes and the config
  /// fields that reach the forward pass: equal for equal weights wherever
  /// they lie, different for any other.
  Sha256Digest fingerprint{};
  /// SHA-256 over kNumerics, the backend, layout and resolved rope: KV made
  /// under another spec is never reused.
  Sha256Digest kv_spec{};
  double load_seconds = 0;
};

/// Loads a GGUF file or a model directory (config.json and *.safetensors)
/// into ops. Peak memory stays near the packed size.
/// Errors: kNotFound, kUnsupported naming the architecture, tensor type or
/// config field, kCorrupt naming the tensor or header field.
/// Thread: the generation thread (ops is used).
Result<LoadedModel> load_model(const std::string& path, Ops& ops);

}  // namespace afterglow
