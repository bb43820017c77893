#pragma once

#include <string>

#include "server/api_keys.h"
#include "server/exchange.h"
#include "server/web_origin.h"

namespace afterglow {

/// Who may use the server.
struct AccessRules {
  ApiKeys keys;            // none: whoever reaches it
  AllowedOrigins origins;  // none: pages of the server itself
  std::string host;        // the name that it was told to listen on
};

/// The gate that enforces them, by a request's head alone:
/// - With keys, a request needs one of them, but for GET /health, the page's
///   own files, the API's description and OPTIONS.
/// - Without, a browser is not let in for other people's pages: no Host by
///   which a loopback server is not known (DNS rebinding), no change asked by
///   a page of another origin (request forgery).
/// - Pages of the allowed origins may read the answers (CORS).
/// Thread: safe from any thread.
HttpGate make_gate(AccessRules rules);

}  // namespace afterglow
