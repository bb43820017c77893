#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>

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

/// Such a gate whose rules can be replaced; a request is judged by those that
/// are in force when its head has come.
/// Thread: safe from any thread.
class ReplaceableGate {
 public:
  explicit ReplaceableGate(AccessRules rules) { replace(std::move(rules)); }

  void replace(AccessRules rules);
  Admission admit(const HttpRequest& request) const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const HttpGate> gate_;  // by mutex_
};

}  // namespace afterglow
