#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "server/exchange.h"

namespace afterglow {

/// A file that the build put into the program (cmake/embed_files.cmake).
struct EmbeddedFile {
  std::string_view name;  // relative to its folder, with '/'
  std::string_view bytes;
  std::string_view sha256;  // of the bytes, in hex
};

/// All files of web/page.
extern const std::span<const EmbeddedFile> kPageFiles;
/// docs/openapi.yaml as openapi.json, alone.
extern const std::span<const EmbeddedFile> kSpecFiles;

/// Answers GET and HEAD with the file, or with 304 where the client has it
/// (RFC 9110, 13.1.2); other methods with 405. The client is told to ask again
/// before each use.
std::unique_ptr<Exchange> respond_file(
    const HttpRequest& request, ResponseHead head, const EmbeddedFile& file
);

}  // namespace afterglow
