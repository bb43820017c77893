#pragma once

#include <string>

#include "base/result.h"

namespace afterglow {

/// fetch_model for a person at a terminal: a line on standard error shows how
/// far the download is; where that is no terminal, a line at the start, one
/// for each further tenth and one at the end. SIGINT and SIGTERM end it with
/// kCancelled, and the next one goes on from there.
/// Requires: without a Signals object, to be called from the main thread.
Result<std::string> download_model(
    const std::string& name, bool refresh = false
);

}  // namespace afterglow
