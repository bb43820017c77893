#pragma once

#include <optional>
#include <string>
#include <variant>

#include "kv/entry_name.h"
#include "server/api_error.h"
#include "server/api_keys.h"
#include "server/exchange.h"
#include "server/json_body.h"

namespace afterglow {

/// What a request to a cache endpoint names.
struct CacheCall {
  std::optional<EntryName> entry;  // `id`
  std::string cache_key;           // `prompt_cache_key`
};

/// Whether an endpoint acts on one entry.
enum class TakesEntry { kNo, kMay, kMust };

/// Reads a call's members from query and body (an object; nothing and null
/// stand for an empty one). Each may be given once; others are refused.
std::variant<CacheCall, ApiError> parse_cache_call(
    const HttpRequest& request, TakesEntry takes, const JsonLimits& limits
);

}  // namespace afterglow
