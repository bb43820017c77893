#include "server/api.h"

#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "server/cache_json.h"
#include "server/deferred.h"
#include "server/entry_texts.h"
#include "server/generation.h"
#include "server/json_output.h"
#include "server/metrics.h"
#include "server/openai_response.h"
#include "server/page.h"

namespace afterglow {
namespace {

using json = nlohmann::ordered_json;

constexpr std::string_view kModelsPrefix = "/v1/models/";

std::unique_ptr<Exchange> respond_json(
    const json& body, unsigned status = 200
) {
  ResponseHead head;
  head.status = status;
  return respond(std::move(head), openai::dump(body));
}

ApiError not_ready(const EngineSlot::View& view) {
  ApiError error = to_api_error(view.error);
  error.status = 503;
  error.type = "service_unavailable_error";
  switch (view.state) {
    case EngineSlot::State::kReady:
    case EngineSlot::State::kLoading:
      error.code = "model_loading";
      break;
    case EngineSlot::State::kFailed:
      error.code = "model_failed";
      break;
    case EngineSlot::State::kStopping:
      error.code = "stopping";
      break;
  }
  return error;
}

json model_json(const ModelInfo& info, std::int64_t created) {
  return {
      {"id", info.name},
      {"object", "model"},
      {"created", created},
      {"owned_by", "afterglow"},
      {"meta",
       {{"path", info.path},
        {"architecture", info.architecture},
        {"quantization", info.quantization},
        {"backend", info.backend},
        {"vocab_size", info.vocab_size},
        {"context_length", info.context_length},
        {"parameters", info.parameters},
        {"weight_bytes", info.weight_bytes},
        {"load_seconds", info.load_seconds}}},
  };
}

/// "127.0.0.1" of "127.0.0.1:4711": one client, however it connects.
std::string address_of(const std::string& endpoint) {
  return endpoint.substr(0, endpoint.rfind(':'));
}

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch()
  )
      .count();
}

}  // namespace

struct Api::Route {
  std::string_view method;
  std::string_view path;  // one that ends with '/' takes all below it
  std::unique_ptr<Exchange> (Api::*handle)(const HttpRequest&);

  bool matches(std::string_view given) const {
    if (path.back() != '/') return given == path;
    return given.size() > path.size() && given.starts_with(path);
  }
};

const Api::Route Api::kRoutes[] = {
    {"POST", "/v1/chat/completions", &Api::chat},
    {"POST", "/chat/completions", &Api::chat},
    {"POST", "/v1/completions", &Api::complete},
    {"POST", "/tokenize", &Api::tokenize},
    {"POST", "/detokenize", &Api::detokenize},
    {"POST", "/apply-template", &Api::apply_template},
    {"GET", "/v1/models", &Api::models},
    {"GET", kModelsPrefix, &Api::model},
    {"GET", "/health", &Api::health},
    {"GET", "/metrics", &Api::metrics},
    {"GET", "/v1/cache", &Api::cache},
    {"DELETE", "/v1/cache", &Api::remove},
    {"POST", "/v1/cache/flush", &Api::flush},
    {"POST", "/v1/cache/pin", &Api::pin},
    {"POST", "/v1/cache/unpin", &Api::unpin},
};

Api::Api(const EngineSlot& slot, ApiOptions options)
    : slot_(slot),
      options_(options),
      started_(unix_seconds()),
      prepare_workers_(options.prepare_threads),
      list_worker_(1),
      disk_worker_(1) {}

std::unique_ptr<Exchange> Api::handle(HttpRequest request) {
  std::string allowed;
  // The transport leaves the body out (RFC 9110, 9.3.2).
  const std::string method = request.method == "HEAD" ? "GET" : request.method;
  for (const Route& route : kRoutes) {
    if (!route.matches(request.path)) continue;
    if (route.method == method) return (this->*route.handle)(request);
    allowed += (allowed.empty() ? "" : ", ") + std::string(route.method);
    if (route.method == "GET") allowed += ", HEAD";
  }
  ApiError error;
  error.type = "invalid_request_error";
  if (allowed.empty()) {
    if (auto page = page_response(request)) return page;
    error.status = 404;
    error.code = "unknown_url";
    error.message = "there is nothing at " + request.path;
    return respond(error);
  }
  error.status = 405;
  error.code = "method_not_allowed";
  error.message =
      request.path + " takes " + allowed + ", not " + request.method;
  ResponseHead head;
  head.status = 405;
  head.headers.emplace_back("Allow", allowed);
  return respond(std::move(head), to_json(error));
}

std::unique_ptr<Exchange> Api::chat(const HttpRequest& request) {
  return generate(
      request,
      parse_chat_request(request.body, options_.defaults, options_.json)
  );
}

std::unique_ptr<Exchange> Api::complete(const HttpRequest& request) {
  return generate(
      request,
      parse_text_request(request.body, options_.defaults, options_.json)
  );
}

std::string Api::client_of(const HttpRequest& request) const {
  const std::string key = api_key_of(request);
  return options_.clients_by_key && !key.empty() ? key
                                                 : address_of(request.client);
}

std::unique_ptr<Exchange> Api::generate(
    const HttpRequest& request, std::variant<CompletionRequest, ApiError> parsed
) {
  if (const auto* error = std::get_if<ApiError>(&parsed)) {
    return respond(*error);
  }
  const EngineSlot::View view = slot_.view();
  if (view.engine == nullptr) return respond(not_ready(view));
  auto& completion = std::get<CompletionRequest>(parsed);
  warn_of_tools(*view.engine, completion);
  const std::string key = api_key_of(request);
  RequestOwner owner;
  owner.cache_namespace =
      view.engine->cache_namespace(key, completion.cache_key);
  owner.client = client_of(request);
  return make_generation(
      *view.engine, prepare_workers_, std::move(completion), std::move(owner)
  );
}

void Api::warn_of_tools(
    const Engine& engine, const CompletionRequest& request
) {
  const ChatPrompt* chat = request.chat_prompt();
  if (chat == nullptr || chat->tools_json.empty() || !request.call_tools ||
      engine.answer_format().tool_calls != nullptr ||
      warned_of_tools_.exchange(true)) {
    return;
  }
  spdlog::warn(
      "a request has tools, but in the model's chat template no format of "
      "tool calls was recognised: calls come as the text of answers"
  );
}

std::unique_ptr<Exchange> Api::on_text(
    const HttpRequest& request, TextCall& call
) {
  const EngineSlot::View view = slot_.view();
  if (view.engine == nullptr) return respond(not_ready(view));
  return defer(
      prepare_workers_,
      client_of(request),
      [this, engine = view.engine, body = request.body, &call] {
        const auto members = parse_json_object(body, options_.json);
        if (const auto* error = std::get_if<ApiError>(&members)) {
          return error_output(*error);
        }
        FieldReader fields(std::get<json>(members));
        return call(*engine, fields, options_.defaults);
      }
  );
}

std::unique_ptr<Exchange> Api::tokenize(const HttpRequest& request) {
  return on_text(request, afterglow::tokenize);
}

std::unique_ptr<Exchange> Api::detokenize(const HttpRequest& request) {
  return on_text(request, afterglow::detokenize);
}

std::unique_ptr<Exchange> Api::apply_template(const HttpRequest& request) {
  return on_text(request, afterglow::apply_template);
}

std::unique_ptr<Exchange> Api::models(const HttpRequest&) {
  const EngineSlot::View view = slot_.view();
  if (view.engine == nullptr) return respond(not_ready(view));
  const json model = model_json(view.engine->info(), started_);
  return respond_json({{"object", "list"}, {"data", json::array({model})}});
}

std::unique_ptr<Exchange> Api::model(const HttpRequest& request) {
  const EngineSlot::View view = slot_.view();
  if (view.engine == nullptr) return respond(not_ready(view));
  const std::string id = request.path.substr(kModelsPrefix.size());
  if (id == view.engine->info().name) {
    return respond_json(model_json(view.engine->info(), started_));
  }
  ApiError error;
  error.status = 404;
  error.type = "invalid_request_error";
  error.code = "model_not_found";
  error.param = "model";
  error.message = "the model '" + id + "' is not served here; '" +
                  view.engine->info().name + "' is";
  return respond(error);
}

std::unique_ptr<Exchange> Api::health(const HttpRequest&) {
  const EngineSlot::View view = slot_.view();
  const auto failed = [](const Error& error) {
    return respond_json(
        {{"status", "failed"}, {"message", to_api_error(error).message}}, 503
    );
  };
  switch (view.state) {
    case EngineSlot::State::kReady:
      if (const Status health = view.engine->health(); !health.ok()) {
        return failed(health.error());
      }
      return respond_json({{"status", "ok"}});
    case EngineSlot::State::kLoading:
      return respond_json({{"status", "loading"}}, 503);
    case EngineSlot::State::kStopping:
      return respond_json({{"status", "stopping"}}, 503);
    case EngineSlot::State::kFailed:
      break;
  }
  return failed(view.error);
}

std::unique_ptr<Exchange> Api::metrics(const HttpRequest&) {
  const EngineSlot::View view = slot_.view();
  if (view.engine == nullptr) return respond(not_ready(view));
  ResponseHead head;
  head.content_type = kMetricsType;
  return respond(
      std::move(head),
      metrics_text(
          view.engine->report(),
          prepare_workers_.jobs(),
          options_.responses ? options_.responses->counts()
                             : std::map<unsigned, std::uint64_t>()
      )
  );
}

std::unique_ptr<Exchange> Api::on_cache(
    const HttpRequest& request,
    TakesEntry takes,
    Workers& workers,
    CacheWork work
) {
  auto parsed = parse_cache_call(request, takes, options_.json);
  if (const auto* error = std::get_if<ApiError>(&parsed)) {
    return respond(*error);
  }
  const EngineSlot::View view = slot_.view();
  if (view.engine == nullptr) return respond(not_ready(view));
  const CacheCall& call = std::get<CacheCall>(parsed);
  return defer(
      workers,
      client_of(request),
      [engine = view.engine,
       name = view.engine->cache_namespace(api_key_of(request), call.cache_key),
       call,
       work = std::move(work)] { return work(*engine, name, call); }
  );
}

std::unique_ptr<Exchange> Api::cache(const HttpRequest& request) {
  return on_cache(
      request,
      TakesEntry::kNo,
      list_worker_,
      [right = TextRight(request
       )](Engine& engine, const std::string& name, const CacheCall&) {
        return json_output(cache_json(
            engine.report(),
            engine.cache_entries(name),
            right.covers(name) ? &engine.tokenizer() : nullptr
        ));
      }
  );
}

std::unique_ptr<Exchange> Api::remove(const HttpRequest& request) {
  return on_cache(
      request,
      TakesEntry::kMay,
      disk_worker_,
      [](Engine& engine, const std::string& name, const CacheCall& call) {
        const auto removed = call.entry ? engine.remove_entry(name, *call.entry)
                                        : engine.clear_cache(name);
        if (!removed.ok()) return fault_output(removed.error(), "id");
        return json_output(
            {{"object", "cache.deleted"},
             {"entries", removed->entries},
             {"blocks", removed->blocks}}
        );
      }
  );
}

std::unique_ptr<Exchange> Api::flush(const HttpRequest& request) {
  return on_cache(
      request,
      TakesEntry::kNo,
      disk_worker_,
      [timeout =
           options_
               .flush_deadline](Engine& engine, const std::string& name, const CacheCall&) {
        const auto begin = std::chrono::steady_clock::now();
        const FlushReport report = engine.flush(begin + timeout, name);
        const std::chrono::duration<double, std::milli> took =
            std::chrono::steady_clock::now() - begin;
        const bool good = report.complete && report.failed_blocks == 0;
        return json_output(
            {{"complete", report.complete},
             {"durable_blocks", report.durable_blocks},
             {"failed_blocks", report.failed_blocks},
             {"ms", took.count()}},
            good ? 200 : 503
        );
      }
  );
}

std::unique_ptr<Exchange> Api::pin(const HttpRequest& request) {
  return set_pinned(request, true);
}

std::unique_ptr<Exchange> Api::unpin(const HttpRequest& request) {
  return set_pinned(request, false);
}

std::unique_ptr<Exchange> Api::set_pinned(
    const HttpRequest& request, bool pinned
) {
  return on_cache(
      request,
      TakesEntry::kMust,
      disk_worker_,
      [pinned](Engine& engine, const std::string& name, const CacheCall& call) {
        const auto entry = engine.set_pinned(name, *call.entry, pinned);
        if (!entry.ok()) return fault_output(entry.error(), "id");
        json body = {{"object", "cache.entry"}};
        body.update(entry_json(*entry));
        return json_output(body);
      }
  );
}

}  // namespace afterglow
