#include "model/config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "model/directory.h"
#include "model/gguf_bytes.h"
#include "model/json.h"
#include "model/rope.h"

namespace afterglow {
namespace {

using nlohmann::json;

json base() {
  return json::parse(R"({
    "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
    "intermediate_size": 96, "num_attention_heads": 4, "vocab_size": 100,
    "rms_norm_eps": 1e-5})");
}

json with(const std::string& field, const json& value) {
  json config = base();
  config[field] = value;
  return config;
}

void expect_error(const json& config, Code code, const std::string& part) {
  SCOPED_TRACE(config.dump());
  const auto result = config_from_json(config, "config.json");
  ASSERT_FALSE(result) << "accepted";
  EXPECT_EQ(result.error().code, code) << result.error().message;
  EXPECT_NE(result.error().message.find(part), std::string::npos)
      << result.error().message;
}

TEST(ConfigJson, MissingFieldsGetMlxLmsDefaults) {
  const auto config = config_from_json(base(), "config.json");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->architecture, "llama");
  EXPECT_EQ(config->kv_heads, 4u);
  EXPECT_EQ(config->head_dim, 16u);
  EXPECT_TRUE(config->tied_embedding);
  EXPECT_FALSE(config->qkv_bias);
  EXPECT_FALSE(config->mlp_bias);
  ASSERT_EQ(config->rope.inv_freq.size(), 8u);
  EXPECT_EQ(config->rope.inv_freq[0], 1.0);
  EXPECT_DOUBLE_EQ(config->rope.inv_freq[4], 0.01);  // 10000^(-1/2)
  EXPECT_FALSE(config->rope.interleaved);
}

TEST(ConfigJson, ReadsWhatIsThere) {
  json source = base();
  source["num_key_value_heads"] = 2;
  source["head_dim"] = 32;
  source["tie_word_embeddings"] = false;
  source["attention_bias"] = true;
  source["mlp_bias"] = true;
  source["rope_theta"] = 1e6;
  source["max_position_embeddings"] = 4096;
  source["rope_scaling"] = nullptr;
  const auto config = config_from_json(source, "config.json");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->kv_heads, 2u);
  EXPECT_EQ(config->head_dim, 32u);
  EXPECT_FALSE(config->tied_embedding);
  EXPECT_TRUE(config->qkv_bias && config->output_bias && config->mlp_bias);
  EXPECT_DOUBLE_EQ(config->rope.inv_freq[8], 1e-3);
  EXPECT_EQ(config->context_length, 4096u);
}

TEST(ConfigJson, MissingOrMalformedFieldsAreNamed) {
  for (const char* field :
       {"model_type",
        "hidden_size",
        "num_hidden_layers",
        "intermediate_size",
        "num_attention_heads",
        "vocab_size",
        "rms_norm_eps"}) {
    json config = base();
    config.erase(field);
    expect_error(
        config, Code::kCorrupt, "field '" + std::string(field) + "' is missing"
    );
  }
  const Code corrupt = Code::kCorrupt;
  expect_error(with("hidden_size", "64"), corrupt, "'hidden_size'");
  expect_error(with("hidden_size", 0), corrupt, "'hidden_size'");
  expect_error(with("hidden_size", -1), corrupt, "'hidden_size'");
  expect_error(with("hidden_size", 64.5), corrupt, "'hidden_size'");
  expect_error(with("vocab_size", 1ull << 63), corrupt, "'vocab_size'");
  expect_error(with("num_hidden_layers", 1 << 20), corrupt, "layers");
  expect_error(with("num_key_value_heads", 3), corrupt, "KV heads");
  expect_error(with("rms_norm_eps", "x"), corrupt, "'rms_norm_eps'");
  expect_error(with("attention_bias", 1), corrupt, "'attention_bias'");
  expect_error(with("rope_theta", 0), corrupt, "'rope_theta'");
  expect_error(with("rope_scaling", 3), corrupt, "rope_scaling");
  expect_error(with("rope_scaling", {{"type", "linear"}}), corrupt, "'factor'");
  expect_error(json::array(), corrupt, "not a JSON object");
}

TEST(ConfigJson, WhatWouldChangeTheForwardPassIsRefusedByName) {
  const Code unsupported = Code::kUnsupported;
  expect_error(
      with("model_type", "qwen2"),
      unsupported,
      "architecture 'qwen2' is not supported; known: llama, mistral"
  );
  expect_error(with("hidden_act", "gelu"), unsupported, "'hidden_act'");
  expect_error(with("head_dim", 24), unsupported, "heads of 24");
  expect_error(
      with("partial_rotary_factor", 0.5), unsupported, "'partial_rotary_factor'"
  );
  expect_error(with("clip_qkv", 8.0), unsupported, "'clip_qkv'");
  expect_error(with("quantize_activations", true), unsupported, "'quantize_");
  expect_error(with("model_file", "x.py"), unsupported, "'model_file'");
  expect_error(
      with("layer_types", {"full_attention", "sliding_attention"}),
      unsupported,
      "'layer_types'"
  );
  for (const char* kind : {"yarn", "dynamic", "longrope", "su"}) {
    expect_error(
        with("rope_scaling", {{"rope_type", kind}, {"factor", 2.0}}),
        unsupported,
        "'" + std::string(kind) + "' is not supported"
    );
  }
  json mistral = with("model_type", "mistral");
  mistral["max_position_embeddings"] = 32768;
  mistral["sliding_window"] = 4096;
  expect_error(mistral, unsupported, "'sliding_window'");
  mistral["sliding_window"] = nullptr;
  EXPECT_TRUE(config_from_json(mistral, "config.json"));
}

TEST(ConfigJson, RopeParametersOfNewConfigsAreRead) {
  const auto config = config_from_json(
      with("rope_parameters", {{"rope_type", "default"}, {"rope_theta", 1e8}}),
      "config.json"
  );
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_DOUBLE_EQ(config->rope.inv_freq[4], 1e-4);
  expect_error(
      with("rope_parameters", {{"full_attention", {{"rope_theta", 1e6}}}}),
      Code::kUnsupported,
      "'rope_parameters'"
  );
}

TEST(Rope, LinearDividesEveryFrequency) {
  const Rope plain = plain_rope(16, 10000);
  const Rope linear = linear_rope(16, 10000, 4);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_DOUBLE_EQ(linear.inv_freq[i], plain.inv_freq[i] / 4);
  }
}

TEST(Rope, Llama3KeepsShortWavesAndStretchesLongOnes) {
  const Rope plain = plain_rope(128, 500000);
  const Rope scaled = llama3_rope(128, 500000, {8, 1, 4, 8192});
  int kept = 0;
  int blended = 0;
  int stretched = 0;
  for (std::size_t i = 0; i < 64; ++i) {
    const double wave = 2 * std::numbers::pi / plain.inv_freq[i];
    const double ratio = plain.inv_freq[i] / scaled.inv_freq[i];
    if (wave < 2048) {
      EXPECT_DOUBLE_EQ(ratio, 1);
      ++kept;
    } else if (wave > 8192) {
      EXPECT_DOUBLE_EQ(ratio, 8);
      ++stretched;
    } else {
      EXPECT_GT(ratio, 1);
      EXPECT_LT(ratio, 8);
      ++blended;
    }
  }
  EXPECT_GT(kept, 20);
  EXPECT_GT(blended, 2);
  EXPECT_GT(stretched, 20);
}

TEST(Quantization, RulesByLayerAreReadAndOtherKindsRefused) {
  const auto read = [](const char* text) {
    return read_quantization(json::parse(text), "config.json");
  };
  const auto rules = read(
      R"({"quantization": {"bits": 4, "group_size": 64, "mode": "affine",
          "a": {"bits": 3, "group_size": 32}, "b": false,
          "c": {"bits": 4, "group_size": 16, "mode": "nvfp4"}}})"
  );
  ASSERT_TRUE(rules) << rules.error().message;
  ASSERT_EQ(rules->size(), 3u);
  EXPECT_EQ(rules->at("a"), (MlxQuantization{"affine", 3, 32}));
  EXPECT_EQ(rules->at("b"), MlxQuantization{});
  EXPECT_EQ(rules->at("c"), (MlxQuantization{"nvfp4", 4, 16}));
  EXPECT_TRUE(read("{}")->empty());

  struct Case {
    const char* config;
    Code code;
    const char* message;
  };
  const Case cases[] = {
      {R"({"quantization": {"bits": 7, "group_size": 64}})",
       Code::kUnsupported,
       "7-bit codes"},
      {R"({"quantization": {"bits": 4, "group_size": 16}})",
       Code::kUnsupported,
       "groups of 16"},
      {R"({"quantization": {"bits": 4, "group_size": 64, "mode": "mxfp4"}})",
       Code::kCorrupt,
       "no mxfp4"},
      {R"({"quantization": {"bits": 4, "group_size": 32, "mode": "fp4"}})",
       Code::kUnsupported,
       "mode 'fp4'"},
      {R"({"quantization": {"bits": 4}})", Code::kCorrupt, "'group_size'"},
      {R"({"quantization": {"bits": 4, "group_size": 64,
           "a": {"bits": 1, "group_size": 64}}})",
       Code::kUnsupported,
       "quantization of 'a'"},
      {R"({"quantization_config": {"quant_method": "awq"}})",
       Code::kUnsupported,
       "\"awq\""},
  };
  for (const Case& c : cases) {
    const auto result = read(c.config);
    ASSERT_FALSE(result) << c.config;
    EXPECT_EQ(result.error().code, c.code) << c.config;
    EXPECT_NE(result.error().message.find(c.message), std::string::npos)
        << result.error().message;
  }
}

// GGUF.

GgufBytes gguf_base() {
  GgufBytes gguf;
  gguf.text("general.architecture", "llama")
      .count("llama.block_count", 2)
      .count("llama.embedding_length", 64)
      .count("llama.feed_forward_length", 96)
      .count("llama.attention.head_count", 4)
      .count("llama.context_length", 512)
      .number("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  return gguf;
}

Result<ModelConfig> read_gguf(GgufBytes gguf) {
  gguf.tensor(
      "token_embd.weight", {64, 100}, 1, std::vector<std::byte>(64 * 100 * 2)
  );
  gguf.tensor("rope_freqs.weight", {8}, 0, [] {
    std::vector<std::byte> bytes(32);
    for (std::size_t i = 0; i < 8; ++i) {
      const float factor = i < 4 ? 1.0F : 8.0F;
      std::memcpy(bytes.data() + 4 * i, &factor, 4);
    }
    return bytes;
  }());
  const auto file = gguf.finish();
  const auto parsed = parse_gguf(file, "test.gguf");
  EXPECT_TRUE(parsed) << parsed.error().message;
  return config_from_gguf(*parsed, "test.gguf");
}

TEST(ConfigGguf, ReadsSizesAndFrequencyFactors) {
  const auto config = read_gguf(gguf_base());
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->layers, 2u);
  EXPECT_EQ(config->kv_heads, 4u);
  EXPECT_EQ(config->head_dim, 16u);
  EXPECT_EQ(config->vocab_size, 100u);
  EXPECT_TRUE(config->tied_embedding);
  const Rope plain = plain_rope(16, 10000);
  EXPECT_EQ(config->rope.inv_freq[3], plain.inv_freq[3]);
  EXPECT_EQ(config->rope.inv_freq[4], plain.inv_freq[4] / 8);
}

TEST(ConfigGguf, WhatWouldChangeTheForwardPassIsRefusedByName) {
  const auto refused = [](GgufBytes gguf, Code code, const std::string& part) {
    const auto config = read_gguf(std::move(gguf));
    ASSERT_FALSE(config) << "accepted; wanted " << part;
    EXPECT_EQ(config.error().code, code);
    EXPECT_NE(config.error().message.find(part), std::string::npos)
        << config.error().message;
  };
  const Code unsupported = Code::kUnsupported;
  refused(
      gguf_base().count("llama.expert_count", 8),
      unsupported,
      "'llama.expert_count'"
  );
  refused(
      gguf_base().count("llama.attention.sliding_window", 512),
      unsupported,
      "'llama.attention.sliding_window'"
  );
  refused(
      gguf_base().boolean("llama.attention.causal", 0),
      unsupported,
      "'llama.attention.causal'"
  );
  refused(
      gguf_base().number("llama.logit_scale", 0.5F),
      unsupported,
      "'llama.logit_scale'"
  );
  refused(
      gguf_base().count("llama.rope.dimension_count", 8),
      unsupported,
      "'llama.rope.dimension_count'"
  );
  refused(
      gguf_base().count("llama.attention.value_length", 32),
      unsupported,
      "'llama.attention.value_length'"
  );
  refused(
      gguf_base().text("llama.rope.scaling.type", "yarn"),
      unsupported,
      "'yarn' is not supported"
  );
  refused(
      gguf_base().number("llama.rope.freq_base", 0),
      Code::kCorrupt,
      "'llama.rope.freq_base'"
  );
  refused(
      GgufBytes().text("general.architecture", "gpt2"),
      unsupported,
      "architecture 'gpt2' is not supported"
  );
  refused(
      GgufBytes().text("general.architecture", "llama"),
      Code::kCorrupt,
      "'llama.block_count' is missing"
  );
}

TEST(ConfigGguf, LinearScalingIsRead) {
  const auto config = read_gguf(gguf_base()
                                    .text("llama.rope.scaling.type", "linear")
                                    .number("llama.rope.scaling.factor", 4));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->rope.inv_freq[0], 0.25);
}

}  // namespace
}  // namespace afterglow
