#pragma once

#include <memory>
#include <string>

#include "engine/engine.h"
#include "server/exchange.h"
#include "server/openai_schema.h"
#include "server/workers.h"

namespace afterglow {

/// Whose request it is. Fields as GenerationRequest's.
struct RequestOwner {
  std::string cache_namespace;
  std::string client;
};

/// An exchange that prepares the prompts on a worker, submits them once for
/// each choice, and turns the engine's events into the response. Choice i of
/// a prompt draws with the request's seed plus i. Destroying the exchange
/// cancels what still runs.
/// The engine must outlive it, and the workers' jobs.
std::unique_ptr<Exchange> make_generation(
    Engine& engine,
    Workers& workers,
    CompletionRequest request,
    RequestOwner owner
);

}  // namespace afterglow
