#pragma once

#include <memory>

#include "server/exchange.h"

namespace afterglow {

/// The web page: web/page's files as the build put them in, below `/`, with
/// index.html at `/`. Answers GET and HEAD, and with 304 where If-None-Match
/// has the file's tag; other methods with 405. Null: no such file.
/// Thread: safe.
std::unique_ptr<Exchange> page_response(const HttpRequest& request);

}  // namespace afterglow
