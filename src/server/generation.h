#pragma once

#include <memory>
#include <string>

#include "engine/engine.h"
#include "server/exchange.h"
#include "server/openai_schema.h"
#include "server/workers.h"

namespace afterglow {

/// An exchange that prepares the prompt on a worker, submits it, and turns
/// the engine's events into the response. Destroying it cancels the request.
/// cache_namespace: as GenerationRequest's.
/// The engine must outlive it, and the workers' jobs.
std::unique_ptr<Exchange> make_generation(
    Engine& engine,
    Workers& workers,
    CompletionRequest request,
    std::string cache_namespace
);

}  // namespace afterglow
