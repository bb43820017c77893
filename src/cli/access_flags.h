#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "server/access.h"
#include "server/http_server.h"

namespace CLI {
class App;
}

namespace afterglow {

/// What the flags say of who may use the server.
struct AccessFlags {
  std::vector<std::string> api_keys;
  std::string api_key_file;
  std::vector<std::string> allowed_origins;
};

/// Adds those, and of `http` those of TLS and of the number of connections.
void add_access_flags(CLI::App& command, AccessFlags& flags, HttpOptions& http);

/// Refuses a certificate without a key, and a key without one. To be called
/// when all flags are taken in. Throws: CLI::ValidationError, naming the flag.
void check_together(const HttpOptions& http);

/// The rules that the flags make, the file read.
/// Errors: of ApiKeys, read_api_key_file and AllowedOrigins.
Result<AccessRules> access_rules(
    const AccessFlags& flags, const std::string& host
);

/// Reads the files of keys and of TLS again and puts what is in them in force:
/// keys for the requests, the certificate for the connections that come from
/// now on. The log says what was read, or why it was not; then what was read
/// before stays.
void renew_secrets(
    const AccessFlags& flags,
    const HttpOptions& http,
    ReplaceableGate& gate,
    HttpServer& server
);

/// Warns where the rules let in whom one may not have meant, of secrets in
/// files that others may read, and of variables of these flags that are empty.
void warn_of_open_doors(
    const AccessFlags& flags,
    const HttpOptions& http,
    const std::string& config_with_keys,
    const AccessRules& rules,
    const HttpServer& server
);

}  // namespace afterglow
