#pragma once

#include <memory>

#include "server/exchange.h"

namespace afterglow {

/// The files that the build put into the program: web/page's below `/`, with
/// index.html at `/`, and the API's description at /openapi.json. Answers GET
/// and HEAD, and with 304 where If-None-Match has the file's tag; other methods
/// with 405. Null: there is no such file.
/// Thread: safe.
std::unique_ptr<Exchange> page_response(const HttpRequest& request);

}  // namespace afterglow
