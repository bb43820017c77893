#include "server/page.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "server/embedded_file.h"

namespace afterglow {
namespace {

/// Nothing but the page's own files, and no script or style in its markup.
constexpr std::string_view kPolicy =
    "default-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'";

std::string_view content_type(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (name.ends_with(".json")) return "application/json";
  if (name.ends_with(".svg")) return "image/svg+xml";
  return "application/octet-stream";
}

const EmbeddedFile* file_at(std::string_view path) {
  if (!path.starts_with('/')) return nullptr;
  const std::string_view name = path == "/" ? "index.html" : path.substr(1);
  for (const auto files : {kPageFiles, kSpecFiles}) {
    const auto found = std::ranges::find(files, name, &EmbeddedFile::name);
    if (found != files.end()) return &*found;
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<Exchange> page_response(const HttpRequest& request) {
  const EmbeddedFile* file = file_at(request.path);
  if (file == nullptr) return nullptr;
  ResponseHead head;
  head.content_type = content_type(file->name);
  head.headers = {
      {"Content-Security-Policy", std::string(kPolicy)},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"}};
  return respond_file(request, std::move(head), *file);
}

}  // namespace afterglow
