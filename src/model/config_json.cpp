#include <cmath>

#include "model/architectures/registry.h"
#include "model/config.h"
#include "model/config_check.h"
#include "model/json.h"
#include "model/rope.h"

namespace afterglow {
namespace {

using nlohmann::json;

// Fields that other members of the family, or forks of it, use to change the
// forward pass, with the value that leaves it as it is.
struct Neutral {
  const char* field;
  json value;
};

const std::vector<Neutral>& neutral_fields() {
  static const std::vector<Neutral> kFields = {
      {"partial_rotary_factor", 1.0},
      {"clip_qkv", nullptr},
      {"embedding_multiplier", 1.0},
      {"residual_multiplier", 1.0},
      {"logits_scaling", 1.0},
      {"logit_scale", 1.0},
      {"attn_logit_softcapping", nullptr},
      {"final_logit_softcapping", nullptr},
      {"use_qk_norm", false},
      {"quantize_activations", false},
      {"model_file", nullptr},
      {"num_local_experts", nullptr},
      {"is_encoder_decoder", false},
      {"alibi", false},
  };
  return kFields;
}

void check_neutral(JsonFields& fields) {
  for (const Neutral& neutral : neutral_fields()) {
    const json* value = fields.find(neutral.field);
    if (value != nullptr && *value != neutral.value) {
      fields.fail(
          Code::kUnsupported,
          neutral.field,
          "= " + value->dump() + " is not supported"
      );
    }
  }
}

void check_layer_types(JsonFields& fields) {
  const json* types = fields.find("layer_types");
  if (types == nullptr) {
    return;
  }
  for (const json& type : *types) {
    if (type != "full_attention") {
      fields.fail(
          Code::kUnsupported, "layer_types", "has layers of " + type.dump()
      );
    }
  }
}

// Mistral's window reaches the forward pass; llama's configs may carry one
// that no reader uses.
void check_window(JsonFields& fields, const ModelConfig& config) {
  if (fields.text("model_type", "") == "mistral" &&
      fields.has("sliding_window") &&
      fields.count("sliding_window") < config.context_length) {
    fields.fail(
        Code::kUnsupported,
        "sliding_window",
        "is shorter than the context; windowed attention is not supported"
    );
  }
}

double positive(JsonFields& fields, const char* name, double fallback) {
  const double value = std::isnan(fallback) ? fields.number(name)
                                            : fields.number(name, fallback);
  if (!(value > 0)) {
    fields.fail(Code::kCorrupt, name, "must be positive");
    return 1;
  }
  return value;
}

Rope read_scaled_rope(JsonFields& scaling, std::size_t dims, double base) {
  const std::string kind =
      scaling.text("type", scaling.text("rope_type", "default"));
  if (kind == "default") {
    return plain_rope(dims, base);
  }
  if (kind == "linear") {
    return linear_rope(dims, base, positive(scaling, "factor", NAN));
  }
  if (kind == "llama3") {
    const Llama3Scaling values{
        .factor = positive(scaling, "factor", NAN),
        .low_freq_factor = positive(scaling, "low_freq_factor", 1),
        .high_freq_factor = positive(scaling, "high_freq_factor", 4),
        .original_context =
            positive(scaling, "original_max_position_embeddings", 8192),
    };
    if (values.high_freq_factor <= values.low_freq_factor) {
      scaling.fail(
          Code::kCorrupt, "high_freq_factor", "must exceed low_freq_factor"
      );
    }
    return llama3_rope(dims, base, values);
  }
  scaling.fail(
      Code::kUnsupported,
      "rope_type",
      "= '" + kind + "' is not supported; known: default, linear, llama3"
  );
  return plain_rope(dims, base);
}

// transformers 5 keeps everything about rope in rope_parameters; before, it
// was rope_theta and rope_scaling.
Result<Rope> read_rope(
    JsonFields& fields, std::size_t dims, const std::string& where
) {
  static const json kNone = json::object();
  const json* parameters = fields.find("rope_parameters");
  const json* found =
      fields.has("rope_scaling") ? fields.find("rope_scaling") : parameters;
  JsonFields scaling(
      found != nullptr ? *found : kNone, where + ": rope_scaling"
  );
  JsonFields outer(
      parameters != nullptr ? *parameters : kNone, where + ": rope_parameters"
  );
  const double inner_base = positive(outer, "rope_theta", 10000);
  const double base = positive(fields, "rope_theta", inner_base);
  if (outer.has("full_attention") || outer.has("sliding_attention")) {
    fields.fail(Code::kUnsupported, "rope_parameters", "differs by layer type");
  }
  Rope rope = read_scaled_rope(scaling, dims, base);
  rope.interleaved = fields.boolean("rope_traditional", false);
  for (const Status* status : {&scaling.status(), &outer.status()}) {
    if (!status->ok()) {
      return status->error();
    }
  }
  return rope;
}

}  // namespace

Result<ModelConfig> config_from_json(
    const json& source, const std::string& where
) {
  JsonFields fields(source, where);
  ModelConfig config;
  const std::string type = fields.text("model_type");
  if (!fields.status()) {
    return fields.status().error();
  }
  const auto architecture = architecture_for(type);
  if (!architecture) {
    return Error{
        architecture.error().code, where + ": " + architecture.error().message};
  }
  config.architecture = *architecture;
  config.hidden = fields.count("hidden_size");
  config.layers = fields.count("num_hidden_layers");
  config.intermediate = fields.count("intermediate_size");
  config.heads = fields.count("num_attention_heads");
  config.kv_heads = fields.count("num_key_value_heads", config.heads);
  config.head_dim = fields.count(
      "head_dim", std::max<std::size_t>(config.hidden / config.heads, 1)
  );
  config.vocab_size = fields.count("vocab_size");
  config.context_length = fields.count("max_position_embeddings", 2048);
  config.norm_eps = static_cast<float>(fields.number("rms_norm_eps"));
  config.tied_embedding = fields.boolean("tie_word_embeddings", true);
  config.qkv_bias = fields.boolean("attention_bias", false);
  config.output_bias = config.qkv_bias;
  config.mlp_bias = fields.boolean("mlp_bias", false);
  const std::string activation = fields.text("hidden_act", "silu");
  if (activation != "silu") {
    fields.fail(
        Code::kUnsupported, "hidden_act", "= '" + activation + "' is not silu"
    );
  }
  check_neutral(fields);
  check_layer_types(fields);
  check_window(fields, config);
  const auto rope = read_rope(fields, config.head_dim, where);
  if (!fields.status()) {
    return fields.status().error();
  }
  if (!rope) {
    return rope.error();
  }
  config.rope = *rope;
  if (Status status = check_config(config, where); !status) {
    return status.error();
  }
  return config;
}

}  // namespace afterglow
