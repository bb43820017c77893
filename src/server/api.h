#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "server/cache_api.h"
#include "server/engine_slot.h"
#include "server/exchange.h"
#include "server/json_body.h"
#include "server/openai_schema.h"
#include "server/response_counts.h"
#include "server/text_api.h"
#include "server/workers.h"

namespace afterglow {

struct ApiOptions {
  RequestDefaults defaults;
  JsonLimits json;
  std::chrono::milliseconds flush_deadline{30'000};
  std::size_t prepare_threads = 2;
  /// Whether the keys that clients show tell who they are. Else, since nobody
  /// looks at them, their addresses do.
  bool clients_by_key = false;
  /// What GET /metrics tells of the server's answers; none: nothing.
  std::shared_ptr<const ResponseCounts> responses;
};

/// The endpoints of docs/http-api.md: one table of routes, each a request to
/// an exchange.
/// Thread: handle is safe from any thread and does not block.
class Api {
 public:
  /// The slot, and the engine in it, must outlive the Api and all exchanges;
  /// the Api must outlive its exchanges.
  Api(const EngineSlot& slot, ApiOptions options);

  std::unique_ptr<Exchange> handle(HttpRequest request);

 private:
  struct Route;
  static const Route kRoutes[];

  std::unique_ptr<Exchange> chat(const HttpRequest& request);
  std::unique_ptr<Exchange> complete(const HttpRequest& request);
  std::unique_ptr<Exchange> tokenize(const HttpRequest& request);
  std::unique_ptr<Exchange> detokenize(const HttpRequest& request);
  std::unique_ptr<Exchange> apply_template(const HttpRequest& request);
  std::unique_ptr<Exchange> models(const HttpRequest& request);
  std::unique_ptr<Exchange> model(const HttpRequest& request);
  std::unique_ptr<Exchange> health(const HttpRequest& request);
  std::unique_ptr<Exchange> metrics(const HttpRequest& request);
  std::unique_ptr<Exchange> cache(const HttpRequest& request);
  std::unique_ptr<Exchange> remove(const HttpRequest& request);
  std::unique_ptr<Exchange> flush(const HttpRequest& request);
  std::unique_ptr<Exchange> pin(const HttpRequest& request);
  std::unique_ptr<Exchange> unpin(const HttpRequest& request);

  /// Who takes turns with others.
  std::string client_of(const HttpRequest& request) const;
  std::unique_ptr<Exchange> generate(
      const HttpRequest& request,
      std::variant<CompletionRequest, ApiError> parsed
  );
  /// Once, when a model's calls cannot be told apart from its text.
  void warn_of_tools(const Engine& engine, const CompletionRequest& request);
  std::unique_ptr<Exchange> on_text(const HttpRequest& request, TextCall& call);
  std::unique_ptr<Exchange> set_pinned(const HttpRequest& request, bool pinned);
  /// What a cache endpoint does for one client, on a worker.
  using CacheWork = std::function<
      Output(Engine&, const std::string& cache_namespace, const CacheCall&)>;
  std::unique_ptr<Exchange> on_cache(
      const HttpRequest& request,
      TakesEntry takes,
      Workers& workers,
      CacheWork work
  );

  const EngineSlot& slot_;
  const ApiOptions options_;
  std::atomic<bool> warned_of_tools_{false};
  const std::int64_t started_;  // Unix time in seconds
  Workers prepare_workers_;
  // Apart: a long list takes a while, and a flush may take half a minute.
  Workers list_worker_;
  Workers disk_worker_;
};

}  // namespace afterglow
