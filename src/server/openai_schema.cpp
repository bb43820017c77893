#include "server/openai_schema.h"

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "server/field_reader.h"
#include "server/prompt_fields.h"
#include "server/tool_fields.h"

namespace afterglow {
namespace {

using json = nlohmann::ordered_json;
using Parsed = std::variant<CompletionRequest, ApiError>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kMaxInteger = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMaxTokens = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kMaxChoices = 128;
constexpr std::size_t kMaxStops = 64;
constexpr std::size_t kMaxStopBytes = 4096;

void read_logit_bias(FieldReader& fields, SamplingParams& sampling) {
  const json* bias = fields.find("logit_bias");
  if (bias == nullptr) return;
  if (!bias->is_object()) {
    fields.fail("logit_bias", "must be an object of token id to number");
    return;
  }
  for (const auto& [key, value] : bias->items()) {
    Token token = 0;
    const char* end = key.data() + key.size();
    const auto parsed = std::from_chars(key.data(), end, token);
    if (key.empty() || parsed.ec != std::errc() || parsed.ptr != end ||
        token < 0) {
      fields.fail("logit_bias", "must have token ids as member names");
      return;
    }
    if (!value.is_number()) {
      fields.fail("logit_bias", "must have numbers as values");
      return;
    }
    sampling.logit_bias.emplace_back(token, value.get<float>());
  }
}

void read_seed(FieldReader& fields, SamplingParams& sampling) {
  const json* seed = fields.find("seed");
  if (seed == nullptr) return;
  if (!seed->is_number_integer()) {
    fields.fail("seed", "must be an integer");
    return;
  }
  sampling.seed = seed->is_number_unsigned()
                      ? seed->get<std::uint64_t>()
                      : static_cast<std::uint64_t>(seed->get<std::int64_t>());
}

void read_penalty(
    FieldReader& fields,
    const std::string& name,
    double low,
    double& penalty,
    std::size_t& context_size
) {
  penalty = fields.number(name + "_penalty", low, kInfinity).value_or(penalty);
  context_size = static_cast<std::size_t>(
      fields.integer(name + "_context_size", 0, kMaxTokens)
          .value_or(static_cast<std::int64_t>(context_size))
  );
}

void read_sampling(
    FieldReader& fields,
    const RequestDefaults& defaults,
    CompletionRequest& request
) {
  SamplingParams& to = request.sampling;
  to.temperature =
      fields.number("temperature", 0, kInfinity).value_or(defaults.temperature);
  to.top_p = fields.number("top_p", 0, 1).value_or(defaults.top_p);
  to.min_p = fields.number("min_p", 0, 1).value_or(defaults.min_p);
  to.top_k = static_cast<std::size_t>(
      fields.integer("top_k", 0, kMaxTokens)
          .value_or(static_cast<std::int64_t>(defaults.top_k))
  );
  read_penalty(
      fields, "repetition", 0, to.repetition_penalty, to.repetition_context_size
  );
  const auto repeat = fields.number("repeat_penalty", 0, kInfinity);
  if (repeat && fields.find("repetition_penalty") == nullptr) {
    to.repetition_penalty = *repeat;
  }
  read_penalty(
      fields,
      "presence",
      -kInfinity,
      to.presence_penalty,
      to.presence_context_size
  );
  read_penalty(
      fields,
      "frequency",
      -kInfinity,
      to.frequency_penalty,
      to.frequency_context_size
  );
  to.xtc_probability =
      fields.number("xtc_probability", 0, 1).value_or(to.xtc_probability);
  to.xtc_threshold =
      fields.number("xtc_threshold", 0, 0.5).value_or(to.xtc_threshold);
  read_logit_bias(fields, to);
  read_seed(fields, to);
}

void read_n(FieldReader& fields, CompletionRequest& request) {
  request.n =
      static_cast<std::size_t>(fields.integer("n", 1, kMaxChoices).value_or(1));
  if (request.choices() > kMaxChoices) {
    fields.fail(
        "n",
        "times the number of prompts must be at most " +
            std::to_string(kMaxChoices)
    );
  }
}

void read_stops(FieldReader& fields, CompletionRequest& request) {
  const json* stop = fields.find("stop");
  if (stop == nullptr) return;
  // mlx_lm takes "" as none.
  if (stop->is_string()) {
    if (*stop != "") request.stops.push_back(stop->get<std::string>());
  } else if (stop->is_array()) {
    for (const json& one : *stop) {
      if (!one.is_string()) {
        fields.fail("stop", "must hold strings only");
        return;
      }
      if (one != "") request.stops.push_back(one.get<std::string>());
    }
  } else {
    fields.fail("stop", "must be a string or a list of strings");
  }
  if (request.stops.size() > kMaxStops) {
    fields.fail(
        "stop", "has more than " + std::to_string(kMaxStops) + " strings"
    );
  }
  for (const std::string& one : request.stops) {
    if (one.size() <= kMaxStopBytes) continue;
    fields.fail(
        "stop",
        "has a string longer than " + std::to_string(kMaxStopBytes) + " bytes"
    );
  }
}

void read_streaming(FieldReader& fields, CompletionRequest& request) {
  request.stream = fields.boolean("stream").value_or(false);
  const json* options = fields.find("stream_options");
  if (options == nullptr) return;
  if (!options->is_object()) {
    fields.fail("stream_options", "must be an object");
    return;
  }
  if (!request.stream) {
    fields.fail("stream_options", "is allowed only when 'stream' is true");
    return;
  }
  FieldReader inner(*options, "stream_options.");
  request.include_usage = inner.boolean("include_usage").value_or(false);
  inner.refuse(
      "include_obfuscation", "is not served: chunks are never padded", false
  );
  inner.refuse_unknown();
  if (inner.error()) fields.fail(*inner.error());
}

/// Whether the prompt cache is read and written for this request.
void read_cache(FieldReader& fields, CompletionRequest& request) {
  const bool both = fields.boolean("cache_prompt").value_or(true);
  request.cache_read = request.cache_store = both;
  request.cache_key = fields.text("prompt_cache_key").value_or("");
  const json* cache = fields.find("cache");
  if (cache == nullptr) return;
  if (!cache->is_object()) {
    fields.fail("cache", "must be an object");
    return;
  }
  FieldReader inner(*cache, "cache.");
  request.cache_read = inner.boolean("read").value_or(true) && both;
  request.cache_store = inner.boolean("store").value_or(true) && both;
  inner.refuse_unknown();
  if (inner.error()) fields.fail(*inner.error());
}

/// The last name that is given counts: llama-server's, OpenAI's older, its
/// newer one.
void read_max_tokens(
    FieldReader& fields,
    const RequestDefaults& defaults,
    CompletionRequest& request
) {
  std::int64_t most = defaults.max_tokens;
  for (const char* name :
       {"n_predict", "max_tokens", "max_completion_tokens"}) {
    const auto given = fields.integer(name, kNoTokenLimit, kMaxInteger);
    if (given == 0) {
      fields.fail(
          name, "must be at least 1, or -1: as far as the context goes"
      );
    }
    most = given.value_or(most);
  }
  request.max_tokens = most == kNoTokenLimit
                           ? std::numeric_limits<std::size_t>::max()
                           : static_cast<std::size_t>(most);
}

/// The same for both endpoints: `logprobs` as a switch, `top_logprobs` as a
/// count; the older endpoint also takes the count in `logprobs`.
void read_logprobs(FieldReader& fields, CompletionRequest& request) {
  const json* logprobs = fields.find("logprobs");
  if (logprobs != nullptr && !request.chat() && logprobs->is_number_integer()) {
    request.logprobs = true;
    request.top_logprobs =
        static_cast<std::size_t>(fields.integer("logprobs", 0, 20).value_or(0));
  } else {
    request.logprobs = fields.boolean("logprobs").value_or(false);
  }
  if (const auto top = fields.integer("top_logprobs", 0, 20)) {
    request.top_logprobs = static_cast<std::size_t>(*top);
    if (*top > 0) request.logprobs = true;
  }
}

/// Fields that change nothing here and that common clients send.
void accept_without_effect(FieldReader& fields) {
  (void)fields.text("model");
  (void)fields.text("user");
  (void)fields.text("safety_identifier");
  const json* metadata = fields.find("metadata");
  if (metadata != nullptr && !metadata->is_object()) {
    fields.fail("metadata", "must be an object");
  }
}

void refuse_unserved(FieldReader& fields) {
  const std::string later = "is not served yet; leave it out";
  fields.refuse("best_of", "must be 1: all answers are given", 1);
  fields.refuse("store", "is not served: answers are not kept", false);
  fields.refuse("adapters", later);
  fields.refuse("draft_model", later, "default_model");
  fields.refuse("num_draft_tokens", later);
  fields.refuse("id_slot", "must be -1: there are no slots to choose from", -1);
  fields.refuse(
      "timings_per_token", "is not served: timings come with the end", false
  );
  const json* format = fields.find("response_format");
  if (format != nullptr && *format != json({{"type", "text"}})) {
    fields.fail(
        "response_format",
        "is served as {\"type\": \"text\"} only",
        "unsupported"
    );
  }
}

void refuse_unserved_chat(FieldReader& fields) {
  const std::string later = "is not served yet; leave it out";
  fields.refuse("functions", later, json::array());
  fields.refuse("function_call", later, "none");
  fields.refuse("modalities", "is served as [\"text\"] only", {"text"});
  for (const char* name :
       {"audio",
        "prediction",
        "reasoning_effort",
        "verbosity",
        "web_search_options"}) {
    fields.refuse(name, later);
  }
  const json* tier = fields.find("service_tier");
  if (tier != nullptr && *tier != "auto") {
    fields.refuse(
        "service_tier", "is served as \"auto\" and \"default\" only", "default"
    );
  }
}

void refuse_unserved_text(FieldReader& fields) {
  fields.refuse("echo", "is not served yet; leave it out", false);
  fields.refuse("suffix", "is not served: the model only continues", "");
}

Parsed parse(
    std::string_view body,
    bool chat,
    const RequestDefaults& defaults,
    const JsonLimits& limits
) {
  auto parsed = parse_json_object(body, limits);
  if (auto* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
  CompletionRequest request;
  FieldReader fields(std::get<json>(parsed));
  if (chat) {
    request.prompts.emplace_back(read_chat_prompt(fields, defaults));
    read_tool_use(fields, request);
    refuse_unserved_chat(fields);
  } else {
    read_text_prompts(fields, request);
    refuse_unserved_text(fields);
  }
  if (fields.error()) return *fields.error();  // there may be no prompt
  read_n(fields, request);
  read_sampling(fields, defaults, request);
  read_stops(fields, request);
  read_streaming(fields, request);
  read_max_tokens(fields, defaults, request);
  read_logprobs(fields, request);
  read_cache(fields, request);
  accept_without_effect(fields);
  refuse_unserved(fields);
  fields.refuse_unknown();
  if (fields.error()) return *fields.error();
  return request;
}

}  // namespace

Parsed parse_chat_request(
    std::string_view body,
    const RequestDefaults& defaults,
    const JsonLimits& limits
) {
  return parse(body, true, defaults, limits);
}

Parsed parse_text_request(
    std::string_view body,
    const RequestDefaults& defaults,
    const JsonLimits& limits
) {
  return parse(body, false, defaults, limits);
}

}  // namespace afterglow
