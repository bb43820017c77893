#pragma once

#include <memory>

#include "engine/engine.h"
#include "server/exchange.h"
#include "server/openai_schema.h"
#include "server/request_owner.h"
#include "server/workers.h"

namespace afterglow {

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
