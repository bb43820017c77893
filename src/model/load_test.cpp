#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/thread_pool.h"
#include "model/gguf_bytes.h"
#include "model/golden.h"
#include "model/model.h"
#include "model/recording_ops.h"
#include "model/test_model.h"
#include "model/text_file.h"
#include "ops/cpu/cpu_ops.h"

namespace afterglow {
namespace {

namespace fs = std::filesystem;

TEST(LoadRealModel, ReadsSmolLm2) {
  RecordingOps ops;
  auto loaded = load_model(test_model_path(), ops);
  ASSERT_TRUE(loaded) << loaded.error().message;
  const LoadedModel& model = *loaded;
  EXPECT_EQ(model.architecture_name, "llama");
  EXPECT_EQ(model.quantization, "Q4_1");
  EXPECT_EQ(model.vocab_size, 49152u);
  EXPECT_EQ(model.context_length, 8192u);
  EXPECT_EQ(model.parameters, 134515008u);
  ASSERT_EQ(model.layout.layers.size(), 30u);
  EXPECT_EQ(model.layout.layers[0].kv_heads, 3u);
  EXPECT_EQ(model.layout.layers[0].k_dim, 64u);
  EXPECT_EQ(model.tokenizer.tokens.size(), 49152u);
  EXPECT_EQ(model.tokenizer.merges.size(), 48900u);
  EXPECT_EQ(model.tokenizer.gguf_model, "gpt2");
  EXPECT_EQ(model.tokenizer.gguf_pre, "smollm");
  EXPECT_EQ(model.tokenizer.stop_tokens, std::vector<Token>{2});
  EXPECT_NE(
      model.tokenizer.chat_template.find("<|im_start|>"), std::string::npos
  );
  EXPECT_EQ(model.tokenizer.add_bos, std::optional(false));
  // Embedding, then four layers of weights each; the head is the embedding.
  EXPECT_EQ(ops.linears.size(), 1u + 30 * 4);
  EXPECT_EQ(model.architecture->head().index, 0);
  EXPECT_EQ(ops.linears[1].rows, 960u);
  EXPECT_EQ(ops.linears[1].cols, 576u);
}

TEST(LoadRealModel, PacksOnTheCpuBackend) {
  ThreadPool pool(2);
  for (int round = 0; round < 2; ++round) {
    auto ops = make_cpu_ops(pool, Activations::kInt16).value();
    auto loaded = load_model(test_model_path(), *ops);
    ASSERT_TRUE(loaded) << loaded.error().message;
    const auto file_bytes = fs::file_size(test_model_path());
    std::printf(
        "loaded in %.3f s, %.1f MiB of weights packed from a file of %.1f "
        "MiB\n",
        loaded->load_seconds,
        double(ops->weight_bytes()) / 1048576,
        double(file_bytes) / 1048576
    );
    // The embedding once, and no codes wider than the file's.
    EXPECT_LT(ops->weight_bytes(), file_bytes);
  }
}

// A copy of one of the small models that a test may damage.
class Copy {
 public:
  explicit Copy(const std::string& name) {
    static int number = 0;
    directory_ = fs::path(testing::TempDir()) /
                 ("afterglow-load-" + std::to_string(::getpid()) + "-" +
                  std::to_string(++number));
    fs::create_directories(directory_);
    const fs::path from = Golden::directory() + name;
    if (fs::is_directory(from)) {
      fs::copy(from, directory_);
      fs::remove(directory_ / "golden.safetensors");
    } else {
      fs::copy(from, directory_);
    }
  }
  ~Copy() { fs::remove_all(directory_); }

  std::string path() const { return directory_.string(); }
  std::string path(const std::string& file) const {
    return (directory_ / file).string();
  }

  void write(const std::string& file, const std::string& text) const {
    std::ofstream(path(file), std::ios::binary) << text;
  }
  std::string read(const std::string& file) const {
    const auto text = read_text_file(path(file));
    EXPECT_TRUE(text);
    return *text;
  }
  /// Replaces the only place where `from` stands.
  void replace(
      const std::string& file, const std::string& from, const std::string& to
  ) const {
    std::string text = read(file);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write(file, text.replace(at, from.size(), to));
  }

 private:
  fs::path directory_;
};

Result<LoadedModel> load(const std::string& path) {
  RecordingOps ops;
  return load_model(path, ops);
}

LoadedModel loaded(const std::string& path) {
  auto model = load(path);
  EXPECT_TRUE(model) << model.error().message;
  return std::move(*model);
}

void expect_error(const std::string& path, Code code, const std::string& part) {
  const auto model = load(path);
  ASSERT_FALSE(model) << "accepted; wanted: " << part;
  EXPECT_EQ(model.error().code, code) << model.error().message;
  EXPECT_NE(model.error().message.find(part), std::string::npos)
      << model.error().message;
}

TEST(Load, NamesTheQuantizationOfMostWeights) {
  const std::pair<const char*, const char*> names[] = {
      {"q2356", "3-bit group 32"}, {"mxfp4", "mxfp4"}, {"nvfp4", "nvfp4"}};
  ThreadPool pool(1);
  for (const auto& [model, name] : names) {
    const auto ops = make_cpu_ops(pool, Activations::kF32).value();
    const auto loaded = load_model(Golden::directory() + model, *ops);
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_EQ(loaded->quantization, name);
  }
}

TEST(Load, DescribesTheModel) {
  const Copy copy("q4-g64-bias");
  const LoadedModel model = loaded(copy.path());
  EXPECT_EQ(model.quantization, "4-bit group 64");
  EXPECT_EQ(model.name, fs::path(copy.path()).filename());
  EXPECT_EQ(loaded(copy.path() + "/").name, model.name);
  EXPECT_EQ(model.tokenizer.stop_tokens, (std::vector<Token>{2, 5}));
  EXPECT_EQ(model.layout.layers[0].kv_heads, 1u);
  EXPECT_EQ(model.layout.layers[0].v_dim, 16u);
  EXPECT_EQ(model.context_length, 512u);
}

TEST(Load, GgufTokenizerIsRead) {
  const LoadedModel model = loaded(Golden::directory() + "tiny.gguf");
  EXPECT_EQ(model.name, "tiny");
  EXPECT_EQ(model.tokenizer.gguf_model, "llama");
  EXPECT_EQ(model.tokenizer.stop_tokens, (std::vector<Token>{2, 7}));
  EXPECT_EQ(model.tokenizer.bos, std::optional<Token>(1));
  EXPECT_EQ(model.tokenizer.add_bos, std::optional(true));
  EXPECT_EQ(model.tokenizer.tokens.at(95), "t95");
  EXPECT_EQ(model.tokenizer.scores.at(95), -95.0F);
  EXPECT_EQ(model.tokenizer.token_types.at(95), 1);
  EXPECT_EQ(model.tokenizer.chat_template, "{{ messages }}");
}

TEST(Load, DirectoryTokenizerFilesAreRead) {
  const Copy copy("q4-g32");
  EXPECT_EQ(loaded(copy.path()).tokenizer.stop_tokens, std::vector<Token>{2});
  EXPECT_EQ(loaded(copy.path()).tokenizer.chat_template, "");
  copy.write("tokenizer.json", "{}");
  copy.write(
      "tokenizer_config.json",
      R"({"chat_template": [{"name": "x", "template": "no"},
                            {"name": "default", "template": "listed"}]})"
  );
  copy.write("generation_config.json", R"({"eos_token_id": [4, 3]})");
  LoadedModel model = loaded(copy.path());
  EXPECT_EQ(model.tokenizer.tokenizer_json, "{}");
  EXPECT_EQ(model.tokenizer.chat_template, "listed");
  EXPECT_EQ(model.tokenizer.stop_tokens, (std::vector<Token>{4, 3}));
  copy.write("chat_template.jinja", "from its own file");
  EXPECT_EQ(loaded(copy.path()).tokenizer.chat_template, "from its own file");
  copy.write("generation_config.json", R"({"eos_token_id": 96})");
  expect_error(copy.path(), Code::kCorrupt, "eos_token_id 96 is no token");
  copy.write("generation_config.json", "{");
  expect_error(copy.path(), Code::kCorrupt, "not valid JSON");
}

TEST(Load, FingerprintIsOfContentNotOfPlace) {
  const Copy one("q4-g32");
  const Copy two("q4-g32");
  EXPECT_EQ(loaded(one.path()).fingerprint, loaded(two.path()).fingerprint);
  EXPECT_EQ(loaded(one.path()).kv_spec, loaded(two.path()).kv_spec);
}

// Each changes one thing of a copy; none may share cached blocks with the
// original.
TEST(Load, FingerprintChangesWithWhatTheModelComputes) {
  const Copy original("q4-g32");
  std::vector<Sha256Digest> seen = {loaded(original.path()).fingerprint};
  const std::function<void(const Copy&)> changes[] = {
      [](const Copy& copy) {
        std::string weights = copy.read("model.safetensors");
        weights.back() ^= 1;
        copy.write("model.safetensors", weights);
      },
      [](const Copy& copy) {
        std::string weights = copy.read("model.safetensors");
        weights[weights.size() / 2] ^= 1;
        copy.write("model.safetensors", weights);
      },
      [](const Copy& copy) { copy.replace("config.json", "1e-05", "2e-05"); },
      [](const Copy& copy) {
        copy.replace("config.json", "10000.0", "10001.0");
      },
      [](const Copy& copy) {
        copy.replace("config.json", "{", "{\"rope_traditional\": true,");
      },
  };
  for (const auto& change : changes) {
    const Copy copy("q4-g32");
    change(copy);
    const Sha256Digest fingerprint = loaded(copy.path()).fingerprint;
    EXPECT_EQ(std::count(seen.begin(), seen.end(), fingerprint), 0)
        << "change " << seen.size();
    seen.push_back(fingerprint);
  }
}

TEST(Load, KvSpecChangesWithModeAndRope) {
  ThreadPool pool(1);
  std::vector<Sha256Digest> seen;
  const Copy plain("q4-g32");
  const Copy turned("q4-g32");
  turned.replace("config.json", "10000.0", "10001.0");
  for (const Copy* copy : {&plain, &turned}) {
    for (Activations mode :
         {Activations::kInt16, Activations::kInt8, Activations::kF32}) {
      const auto ops = make_cpu_ops(pool, mode).value();
      const auto model = load_model(copy->path(), *ops);
      ASSERT_TRUE(model);
      EXPECT_EQ(std::count(seen.begin(), seen.end(), model->kv_spec), 0);
      seen.push_back(model->kv_spec);
    }
  }
}

TEST(Load, WhatIsNotThereIsNotFound) {
  const std::string none = Golden::directory() + "none";
  expect_error(none, Code::kNotFound, none);
  const Copy copy("q4-g32");
  fs::remove(copy.path("model.safetensors"));
  expect_error(copy.path(), Code::kNotFound, "no model*.safetensors");
  fs::remove(copy.path("config.json"));
  expect_error(copy.path(), Code::kNotFound, "config.json");
}

TEST(Load, WeightsAloneAreNoModel) {
  expect_error(
      Golden::directory() + "q4-g32/model.safetensors",
      Code::kInvalidArgument,
      "name the directory"
  );
}

TEST(Load, WeightsThatDoNotFitTheConfigAreNamed) {
  struct Case {
    const char* from;
    const char* to;
    Code code;
    const char* message;
  };
  const Case cases[] = {
      {"\"num_hidden_layers\": 2",
       "\"num_hidden_layers\": 3",
       Code::kCorrupt,
       "'model.layers.2.input_layernorm.weight' is missing"},
      {"\"num_hidden_layers\": 2",
       "\"num_hidden_layers\": 1",
       Code::kUnsupported,
       "'model.layers.1.input_layernorm.weight' has no place"},
      {"\"vocab_size\": 96",
       "\"vocab_size\": 97",
       Code::kCorrupt,
       "'model.embed_tokens.weight' is [96, 64], the config wants [97, 64]"},
      {"\"num_key_value_heads\": 2",
       "\"num_key_value_heads\": 4",
       Code::kCorrupt,
       "k_proj.weight' is [32, 64], the config wants [64, 64]"},
      {"\"tie_word_embeddings\": true",
       "\"tie_word_embeddings\": false",
       Code::kCorrupt,
       "'lm_head.weight' is missing"},
      {"{",
       "{\"attention_bias\": true,",
       Code::kCorrupt,
       "q_proj.bias' is missing"},
      {"\"bits\": 4",
       "\"bits\": 4, \"model.embed_tokens\": "
       "{\"bits\": 8, \"group_size\": 32}",
       Code::kCorrupt,
       "'model.embed_tokens' is not quantized as the config"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.to);
    const Copy copy("q4-g32");
    copy.replace("config.json", c.from, c.to);
    expect_error(copy.path(), c.code, c.message);
  }
}

TEST(Load, ModesOfLayersMustBeTheConfigs) {
  const Copy copy("nvfp4");
  copy.replace("config.json", "\"mxfp8\"", "\"mxfp9\"");
  expect_error(copy.path(), Code::kUnsupported, "mode 'mxfp9'");
  const Copy other("nvfp4");
  other.replace(
      "config.json", "\"lm_head\": {", "\"lm_head\": false, \"x\": {"
  );
  expect_error(
      other.path(),
      Code::kCorrupt,
      "'lm_head' is not quantized as the config's quantization says: it is "
      "mxfp8, not unquantized"
  );
}

TEST(Load, IndexMayNotLeaveItsDirectory) {
  const Copy copy("bf16-sharded");
  for (const char* name : {"../x.safetensors", "/x.safetensors", ".."}) {
    copy.write(
        "model.safetensors.index.json",
        std::string(R"({"weight_map": {"a": ")") + name + "\"}}"
    );
    expect_error(copy.path(), Code::kCorrupt, "no plain file name");
  }
  copy.write("model.safetensors.index.json", "{}");
  expect_error(copy.path(), Code::kCorrupt, "weight_map is missing");
}

TEST(Load, PartsOfSplitModelsAreRefused) {
  const Copy copy("q4-g32");
  const auto bytes = GgufBytes().count("split.count", 2).finish();
  copy.write(
      "part.gguf", {reinterpret_cast<const char*>(bytes.data()), bytes.size()}
  );
  expect_error(copy.path("part.gguf"), Code::kUnsupported, "split model");
}

TEST(Load, TruncatedFilesAreCorrupt) {
  const Copy copy("tiny.gguf");
  const std::string whole = copy.read("tiny.gguf");
  for (std::size_t size = 1; size < whole.size(); size += 997) {
    copy.write("tiny.gguf", whole.substr(0, size));
    const auto model = load(copy.path("tiny.gguf"));
    ASSERT_FALSE(model) << size;
    EXPECT_EQ(model.error().code, Code::kCorrupt) << model.error().message;
  }
  copy.write("tiny.gguf", "");
  expect_error(copy.path("tiny.gguf"), Code::kCorrupt, "the file is empty");
}

}  // namespace
}  // namespace afterglow
