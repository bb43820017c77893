#include "server/embedded_file.h"

#include <algorithm>
#include <string>
#include <utility>

namespace afterglow {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

/// Whether If-None-Match names the tag. None of ours has a comma.
bool names_tag(std::string_view field, std::string_view tag) {
  while (!field.empty()) {
    const std::string_view piece = field.substr(0, field.find(','));
    field.remove_prefix(std::min(piece.size() + 1, field.size()));
    std::string_view given = trimmed(piece);
    if (given == "*") return true;
    if (given.starts_with("W/")) given.remove_prefix(2);
    if (given == tag) return true;
  }
  return false;
}

}  // namespace

std::unique_ptr<Exchange> respond_file(
    const HttpRequest& request, ResponseHead head, const EmbeddedFile& file
) {
  if (request.method != "GET" && request.method != "HEAD") {
    ApiError error;
    error.status = 405;
    error.type = "invalid_request_error";
    error.code = "method_not_allowed";
    error.message = request.path + " takes GET, HEAD, not " + request.method;
    ResponseHead refusal;
    refusal.status = 405;
    refusal.headers.emplace_back("Allow", "GET, HEAD");
    return respond(std::move(refusal), to_json(error));
  }
  const std::string tag = '"' + std::string(file.sha256.substr(0, 32)) + '"';
  head.headers.emplace_back("ETag", tag);
  head.headers.emplace_back("Cache-Control", "no-cache");
  if (names_tag(request.if_none_match, tag)) head.status = 304;
  return respond(std::move(head), std::string(file.bytes));
}

}  // namespace afterglow
