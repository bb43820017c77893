#include "server/access.h"

#include <optional>
#include <string_view>
#include <utility>

#include "server/log_value.h"

namespace afterglow {
namespace {

constexpr char kMethods[] = "GET, POST, DELETE, OPTIONS";
/// '*' does not stand for Authorization (Fetch standard, 3.3.5).
constexpr char kHeaders[] = "Authorization, Content-Type, X-Api-Key, *";
constexpr char kExposed[] = "X-Request-Id, Retry-After";
constexpr char kPreflightSeconds[] = "7200";

ApiError denied(std::string code, std::string message) {
  ApiError error;
  error.status = 403;
  error.type = "permission_error";
  error.code = std::move(code);
  error.message = std::move(message);
  return error;
}

std::unique_ptr<Exchange> key_wanted(bool none_shown) {
  ApiError error;
  error.status = 401;
  error.type = "invalid_request_error";
  error.code = "invalid_api_key";
  error.message = none_shown
                      ? "an API key is needed; send it as 'Authorization: "
                        "Bearer KEY'"
                      : "the API key is not valid here";
  ResponseHead head;
  head.status = error.status;
  head.headers.emplace_back("WWW-Authenticate", "Bearer");
  return respond(std::move(head), to_json(error));
}

/// Open to all: tells nothing and does nothing.
bool is_open(const HttpRequest& request) {
  if (request.method != "GET" && request.method != "HEAD") return false;
  const std::string_view path = request.path;
  return path == "/health" || path == "/openapi.json" || path == "/" ||
         path == "/icon.svg" || path.starts_with("/css/") ||
         path.starts_with("/js/");
}

bool changes_nothing(const std::string& method) {
  return method == "GET" || method == "HEAD";
}

class Gate {
 public:
  explicit Gate(AccessRules rules) : rules_(std::move(rules)) {
    if (auto named = parse_authority(rules_.host)) host_ = named->host;
  }

  Admission admit(const HttpRequest& request) const {
    Admission admission;
    admission.headers = cors_headers(request);
    if (request.method == "OPTIONS") {
      admission.answer = preflight(request);
    } else if (!rules_.keys.empty()) {
      const std::string key = api_key_of(request);
      if (!is_open(request) && !rules_.keys.contain(key)) {
        admission.answer = key_wanted(key.empty());
      }
    } else if (const auto error = forged(request)) {
      admission.answer = respond(*error);
    }
    return admission;
  }

 private:
  HeaderList cors_headers(const HttpRequest& request) const {
    HeaderList headers;
    if (rules_.origins.none()) return headers;
    if (!rules_.origins.all()) headers.emplace_back("Vary", "Origin");
    if (rules_.origins.contain(request.origin)) {
      headers.emplace_back(
          "Access-Control-Allow-Origin",
          rules_.origins.all() ? "*" : request.origin
      );
      headers.emplace_back("Access-Control-Expose-Headers", kExposed);
    }
    return headers;
  }

  std::unique_ptr<Exchange> preflight(const HttpRequest& request) const {
    if (rules_.keys.empty()) {
      if (const auto error = wrong_host(request)) return respond(*error);
    }
    if (const auto error = foreign_page(request)) return respond(*error);
    ResponseHead head;
    head.status = 204;
    head.headers = {
        {"Allow", kMethods},
        {"Access-Control-Allow-Methods", kMethods},
        {"Access-Control-Allow-Headers", kHeaders},
        {"Access-Control-Max-Age", kPreflightSeconds}};
    return respond(std::move(head), "");
  }

  std::optional<ApiError> forged(const HttpRequest& request) const {
    if (auto error = wrong_host(request)) return error;
    if (changes_nothing(request.method)) return {};
    return foreign_page(request);
  }

  std::optional<ApiError> wrong_host(const HttpRequest& request) const {
    // A client of HTTP/1.0 may name none; browsers always do.
    if (!request.over_loopback || request.host.empty()) return {};
    const auto named = parse_authority(request.host);
    if (named && (is_sure_host(named->host) || named->host == host_ ||
                  rules_.origins.contain_host(named->host))) {
      return {};
    }
    return denied(
        "host_not_allowed",
        "this server is not known as " + log_value(request.host) +
            "; ask for localhost, or start it with --api-key, or with "
            "--allowed-origins and the origin of that name"
    );
  }

  std::optional<ApiError> foreign_page(const HttpRequest& request) const {
    if (request.origin.empty() || rules_.origins.contain(request.origin)) {
      return {};
    }
    const auto origin = parse_origin(request.origin);
    const auto host = parse_authority(request.host);
    if (origin && host && is_same_origin(*origin, *host)) return {};
    return denied(
        "origin_not_allowed",
        "pages of " + log_value(request.origin) +
            " may not use this server; start it with --allowed-origins and "
            "that origin to let them"
    );
  }

  AccessRules rules_;
  std::string host_;  // as parse_authority writes it
};

}  // namespace

HttpGate make_gate(AccessRules rules) {
  return [gate = std::make_shared<const Gate>(std::move(rules)
          )](const HttpRequest& request) { return gate->admit(request); };
}

void ReplaceableGate::replace(AccessRules rules) {
  auto gate = std::make_shared<const HttpGate>(make_gate(std::move(rules)));
  const std::lock_guard lock(mutex_);
  gate_.swap(gate);
}

Admission ReplaceableGate::admit(const HttpRequest& request) const {
  std::unique_lock lock(mutex_);
  const auto gate = gate_;
  lock.unlock();
  return (*gate)(request);
}

}  // namespace afterglow
