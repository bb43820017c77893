#pragma once

#include <string>

#include "engine/engine.h"
#include "server/openai_schema.h"

namespace afterglow {

/// The server's log at its start.

/// One line of `key=value` pairs: what is served, where, within which limits
/// (in bytes), and how its answers are taken apart. options: it was loaded
/// with.
void log_ready(
    const Engine& engine, const LoadOptions& options, const std::string& url
);

/// Warns of a `--memory-limit` that is more than the process can have.
void warn_of_memory_limit(const LoadOptions& options);

/// Warns when the chat template, with the variables that requests get by
/// default, cannot render what every chat begins with: a message of a user.
void warn_of_template(const Engine& engine, const RequestDefaults& defaults);

}  // namespace afterglow
