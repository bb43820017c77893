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
      {"system_fingerprint", identity.fingerprint},
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

json call_json(const ToolCall& call) {
  return {
      {"id", call.id},
      {"type", "function"},
      {"function", {{"name", call.name}, {"arguments", call.arguments}}},
  };
}

double per_second(std::size_t count, double ms) {
  return ms > 0 ? 1000.0 * static_cast<double>(count) / ms : 0;
}

}  // namespace

json chunk(
    const AnswerIdentity& identity,
    std::size_t index,
    const ChoiceDelta& delta,
    bool first,
    std::string_view finish_reason,
    const json& logprobs
) {
  json choice = {{"index", index}};
  if (identity.chat) {
    json message = json::object();
    if (first) message["role"] = "assistant";
    if (!delta.content.empty() || (first && delta.empty())) {
      message["content"] = delta.content;
    }
    if (!delta.reasoning.empty()) message["reasoning"] = delta.reasoning;
    for (std::size_t i = 0; i < delta.tool_calls.size(); ++i) {
      json call = {{"index", delta.calls_before + i}};
      call.update(call_json(delta.tool_calls[i]));
      message["tool_calls"].push_back(std::move(call));
    }
    choice["delta"] = std::move(message);
  } else {
    choice["text"] = delta.content;
  }
  choice["logprobs"] = logprobs;
  choice["finish_reason"] = finish_json(finish_reason);
  json body = envelope(identity, chunk_object(identity));
  body["choices"] = json::array({std::move(choice)});
  return body;
}

json usage_chunk(const AnswerIdentity& identity, const Usage& usage) {
  json body = envelope(identity, chunk_object(identity));
  body["choices"] = json::array();
  body["usage"] = usage_json(usage);
  return body;
}

json whole_choice(
    const AnswerIdentity& identity,
    std::size_t index,
    const ChoiceDelta& all,
    std::string_view finish_reason,
    const json& logprobs
) {
  json choice = {{"index", index}};
  if (identity.chat) {
    json message = {{"role", "assistant"}, {"content", all.content}};
    if (all.content.empty() && !all.tool_calls.empty()) {
      message["content"] = nullptr;
    }
    if (!all.reasoning.empty()) message["reasoning"] = all.reasoning;
    for (const ToolCall& call : all.tool_calls) {
      message["tool_calls"].push_back(call_json(call));
    }
    choice["message"] = std::move(message);
  } else {
    choice["text"] = all.content;
  }
  choice["logprobs"] = logprobs;
  choice["finish_reason"] = finish_json(finish_reason);
  return choice;
}

json whole(const AnswerIdentity& identity, json choices, const Usage& usage) {
  json body =
      envelope(identity, identity.chat ? "chat.completion" : "text_completion");
  body["choices"] = std::move(choices);
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
