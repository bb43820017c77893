#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "server/engine_slot.h"
#include "server/exchange.h"
#include "server/json_body.h"
#include "server/openai_schema.h"
#include "server/workers.h"

namespace afterglow {

struct ApiOptions {
  RequestDefaults defaults;
  JsonLimits json;
  std::chrono::milliseconds flush_deadline{30'000};
  int prepare_threads = 2;
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
  std::unique_ptr<Exchange> models(const HttpRequest& request);
  std::unique_ptr<Exchange> model(const HttpRequest& request);
  std::unique_ptr<Exchange> health(const HttpRequest& request);
  std::unique_ptr<Exchange> cache(const HttpRequest& request);
  std::unique_ptr<Exchange> flush(const HttpRequest& request);
  std::unique_ptr<Exchange> generate(
      std::variant<CompletionRequest, ApiError> parsed
  );

  const EngineSlot& slot_;
  const ApiOptions options_;
  const std::int64_t started_;  // Unix time in seconds
  Workers prepare_workers_;
  Workers flush_worker_;  // apart: a flush may take half a minute
};

}  // namespace afterglow
