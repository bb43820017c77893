#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "model/architectures/registry.h"
#include "model/config.h"
#include "model/directory.h"
#include "model/fingerprint.h"
#include "model/json.h"
#include "model/mapped_file.h"
#include "model/model.h"
#include "model/model_name.h"
#include "model/text_file.h"
#include "model/tokenizer_source.h"
#include "model/weights.h"

namespace afterglow {
namespace {

namespace fs = std::filesystem;

// A model's files, opened and checked, before any weight is handed on.
struct Opened {
  std::vector<MappedFile> files;
  ModelConfig config;
  Weights weights;
  TokenizerSource tokenizer;
};

Result<Opened> open_gguf(const std::string& path) {
  const std::string where = "[model.load] " + path;
  auto file = MappedFile::open(path);
  if (!file) {
    return file.error();
  }
  const auto gguf = parse_gguf(file->bytes(), path);
  if (!gguf) {
    return gguf.error();
  }
  GgufFields fields(*gguf, where);
  if (fields.integer("split.count").value_or(1) > 1) {
    return Error{
        Code::kUnsupported,
        where +
            ": one part of a split model; merge the parts into one file "
            "with llama.cpp's gguf-split --merge"};
  }
  auto config = config_from_gguf(*gguf, where);
  if (!config) {
    return config.error();
  }
  auto weights = Weights::from_gguf(*gguf, *config, where);
  if (!weights) {
    return weights.error();
  }
  auto tokenizer = tokenizer_from_gguf(*gguf, config->vocab_size, where);
  if (!tokenizer) {
    return tokenizer.error();
  }
  Opened opened;
  opened.files.push_back(std::move(*file));
  opened.config = std::move(*config);
  opened.weights = std::move(*weights);
  opened.tokenizer = std::move(*tokenizer);
  return opened;
}

Result<Opened> open_directory(const std::string& path) {
  const std::string where = "[model.load] " + path;
  const std::string config_path = path + "/config.json";
  const auto text = read_text_file(config_path);
  if (!text) {
    return text.error();
  }
  const auto json = parse_json(*text, "[model.load] " + config_path);
  if (!json) {
    return json.error();
  }
  Opened opened;
  auto config = config_from_json(*json, "[model.load] " + config_path);
  if (!config) {
    return config.error();
  }
  opened.config = std::move(*config);
  auto rules = read_quantization(*json, "[model.load] " + config_path);
  if (!rules) {
    return rules.error();
  }
  const auto names = weight_files(path);
  if (!names) {
    return names.error();
  }
  std::vector<Safetensors> shards;
  for (const std::string& name : *names) {
    auto file = MappedFile::open(path + "/" + name);
    if (!file) {
      return file.error();
    }
    auto shard = parse_safetensors(file->bytes(), path + "/" + name);
    if (!shard) {
      return shard.error();
    }
    shards.push_back(std::move(*shard));
    opened.files.push_back(std::move(*file));
  }
  auto weights = Weights::from_safetensors(std::move(shards), where);
  if (!weights) {
    return weights.error();
  }
  opened.weights = std::move(*weights);
  opened.weights.set_rules(std::move(*rules));
  auto tokenizer = tokenizer_from_directory(path, opened.config.vocab_size);
  if (!tokenizer) {
    return tokenizer.error();
  }
  opened.tokenizer = std::move(*tokenizer);
  return opened;
}

Result<Opened> open_model(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) {
    return open_directory(path);
  }
  if (fs::path(path).extension() == ".safetensors") {
    return Error{
        Code::kInvalidArgument,
        "[model.load] " + path +
            ": weights alone are no model; name the directory that also holds "
            "config.json"};
  }
  return open_gguf(path);
}

KvLayout make_layout(const ModelConfig& config, KvType type) {
  const LayerKv layer{
      .kv_heads = static_cast<std::uint32_t>(config.kv_heads),
      .k_dim = static_cast<std::uint32_t>(config.head_dim),
      .v_dim = static_cast<std::uint32_t>(config.head_dim),
      .type = type,
  };
  KvLayout layout;
  layout.layers.assign(config.layers, layer);
  return layout;
}

}  // namespace

Result<LoadedModel> load_model(const std::string& path, Ops& ops) {
  const auto start = std::chrono::steady_clock::now();
  auto opened = open_model(path);
  if (!opened) {
    return opened.error();
  }
  const ModelConfig& config = opened->config;
  Weights& weights = opened->weights;
  // Hashing reads the same bytes at the same time as packing. The future
  // waits in its destructor, before the files are unmapped.
  auto fingerprint = start_fingerprint(weights.tensors(), config.describe());
  auto architecture = make_architecture(config, weights, ops);
  if (!architecture) {
    return architecture.error();
  }
  if (Status status = weights.check_all_used(); !status) {
    return status.error();
  }
  LoadedModel model;
  model.path = path;
  model.name = model_name(path);
  model.architecture_name = config.architecture;
  model.vocab_size = config.vocab_size;
  model.context_length = config.context_length;
  model.parameters = weights.parameters();
  model.quantization = weights.quantization();
  model.layout = make_layout(config, ops.kv_type());
  model.architecture = std::move(*architecture);
  model.tokenizer = std::move(opened->tokenizer);
  model.fingerprint = fingerprint.get();
  model.kv_spec = kv_spec_digest(ops.describe(), model.layout, config.rope);
  model.load_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return model;
}

}  // namespace afterglow
