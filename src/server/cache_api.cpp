#include "server/cache_api.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "server/field_reader.h"

namespace afterglow {
namespace {

using json = nlohmann::ordered_json;

/// The members of query and body as one object.
std::variant<json, ApiError> members_of(
    const HttpRequest& request, const JsonLimits& limits
) {
  auto body = parse_json_object(request.body, limits, BodyIs::kOptional);
  if (auto* members = std::get_if<json>(&body)) {
    for (const auto& [name, value] : request.query) {
      if (members->contains(name)) {
        return invalid_field(name, "'" + name + "' is given twice");
      }
      (*members)[name] = value;
    }
  }
  return body;
}

void read_entry(FieldReader& fields, TakesEntry takes, CacheCall& call) {
  if (takes == TakesEntry::kNo) return;
  const auto id = fields.text("id");
  if (!id) {
    if (takes == TakesEntry::kMust) fields.fail("id", "is missing");
    return;
  }
  auto name = parse_entry_name(*id);
  if (name.ok()) {
    call.entry = *std::move(name);
  } else {
    fields.fail(
        "id",
        "must be at least 4 hexadecimal digits, then perhaps ':' and the "
        "entry's tokens"
    );
  }
}

}  // namespace

std::variant<CacheCall, ApiError> parse_cache_call(
    const HttpRequest& request, TakesEntry takes, const JsonLimits& limits
) {
  auto members = members_of(request, limits);
  if (auto* error = std::get_if<ApiError>(&members)) return std::move(*error);
  FieldReader fields(std::get<json>(members));
  CacheCall call;
  read_entry(fields, takes, call);
  call.cache_key = fields.text("prompt_cache_key").value_or("");
  fields.refuse_unknown();
  if (fields.error()) return *fields.error();
  return call;
}

}  // namespace afterglow
