#include "server/openai_response.h"

#include <utility>

namespace afterglow::openai {
namespace {

json envelope(const AnswerIdentity& identity, const char* object) {
  return {
      {"id", identity.id},
      {"object", object},
      {"created", identity.created},
      {"model", identity.model},
  };
}

const char* chunk_object(const AnswerIdentity& identity) {
  return identity.chat ? "chat.completion.chunk" : "text_completion";
}

json usage_json(const Usage& usage) {
  return {
      {"prompt_tokens", usage.prompt_tokens},
      {"completion_tokens", usage.completion_tokens},
      {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
      {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
  };
}

json finish_json(std::string_view reason) {
  return reason.empty() ? json(nullptr) : json(std::string(reason));
}

json chunk(
    const AnswerIdentity& identity,
    std::string_view text,
    bool first,
    std::string_view finish_reason,
    const json& logprobs
) {
  json choice = {{"index", 0}};
  if (identity.chat) {
    json delta = json::object();
    if (first) delta["role"] = "assistant";
    if (first || !text.empty()) delta["content"] = std::string(text);
    choice["delta"] = std::move(delta);
  } else {
    choice["text"] = std::string(text);
  }
  choice["logprobs"] = logprobs;
  choice["finish_reason"] = finish_json(finish_reason);
  json body = envelope(identity, chunk_object(identity));
  body["choices"] = json::array({std::move(choice)});
  return body;
}

double per_second(std::size_t count, double ms) {
  return ms > 0 ? 1000.0 * static_cast<double>(count) / ms : 0;
}

}  // namespace

json delta(
    const AnswerIdentity& identity,
    std::string_view text,
    bool first,
    const json& logprobs
) {
  return chunk(identity, text, first, {}, logprobs);
}

json last_delta(
    const AnswerIdentity& identity,
    bool first,
    std::string_view finish_reason,
    const json& logprobs
) {
  return chunk(identity, {}, first, finish_reason, logprobs);
}

json usage_chunk(const AnswerIdentity& identity, const Usage& usage) {
  json body = envelope(identity, chunk_object(identity));
  body["choices"] = json::array();
  body["usage"] = usage_json(usage);
  return body;
}

json whole(
    const AnswerIdentity& identity,
    std::string_view text,
    std::string_view finish_reason,
    const json& logprobs,
    const Usage& usage
) {
  json choice = {{"index", 0}};
  if (identity.chat) {
    choice["message"] = {{"role", "assistant"}, {"content", std::string(text)}};
  } else {
    choice["text"] = std::string(text);
  }
  choice["logprobs"] = logprobs;
  choice["finish_reason"] = finish_json(finish_reason);
  json body =
      envelope(identity, identity.chat ? "chat.completion" : "text_completion");
  body["choices"] = json::array({std::move(choice)});
  body["usage"] = usage_json(usage);
  return body;
}

json timings(const Timings& t) {
  return {
      {"cache_n", t.cache_n},
      {"cache_ram_n", t.cache_ram_n},
      {"cache_disk_n", t.cache_disk_n},
      {"cache_store", t.cache_store},
      {"queue_ms", t.queue_ms},
      {"restore_ms", t.restore_ms},
      {"prompt_n", t.prompt_n},
      {"prompt_ms", t.prompt_ms},
      {"prompt_per_second", per_second(t.prompt_n, t.prompt_ms)},
      {"predicted_n", t.predicted_n},
      {"predicted_ms", t.predicted_ms},
      {"predicted_per_second", per_second(t.predicted_n, t.predicted_ms)},
  };
}

std::string event(const json& data) {
  return "data: " + dump(data) + "\n\n";
}

std::string comment(std::string_view text) {
  return ": " + std::string(text) + "\n\n";
}

std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace afterglow::openai
