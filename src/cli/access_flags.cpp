#include "cli/access_flags.h"

#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <utility>

#include "cli/flag_checks.h"
#include "cli/private_file.h"

namespace afterglow {
namespace {

std::string check_api_key(const std::string& text) {
  return ApiKeys::make({text}).ok()
             ? ""
             : "must be one word of printable ASCII, as clients send it in a "
               "header";
}

std::string check_origin(const std::string& text) {
  return AllowedOrigins::make({text}).ok()
             ? ""
             : "'" + text +
                   "' is no origin such as http://localhost:3000 or "
                   "https://example.org, and '*' are all";
}

bool is_set_but_empty(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value == 0;
}

void warn_if_exposed(const std::string& path) {
  if (!is_exposed(path) || is_credential(path)) return;
  spdlog::warn(
      "others than its owner may read or change {}; chmod 600 ends that", path
  );
}

void renew_keys(
    const AccessFlags& flags, const std::string& host, ReplaceableGate& gate
) {
  auto rules = access_rules(flags, host);
  if (!rules.ok()) {
    spdlog::error(
        "renewal: the API keys stay as they were: {}", rules.error().message
    );
    return;
  }
  gate.replace(*std::move(rules));
  spdlog::info("renewal: the API keys of {} are in force", flags.api_key_file);
  warn_if_exposed(flags.api_key_file);
}

void renew_certificate(const HttpOptions& http, HttpServer& server) {
  if (const Status renewed = server.renew_tls(); !renewed.ok()) {
    spdlog::error(
        "renewal: the certificate stays as it was: {}", renewed.error().message
    );
    return;
  }
  spdlog::info(
      "renewal: the certificate of {} is in force", http.ssl_cert_file
  );
  warn_if_exposed(http.ssl_key_file);
}

}  // namespace

void add_access_flags(
    CLI::App& command, AccessFlags& flags, HttpOptions& http
) {
  command
      .add_option(
          "--api-key",
          flags.api_keys,
          "A key that opens the server (repeatable); without any it is open"
      )
      ->check(CLI::Validator(check_api_key, ""))
      ->type_name("KEY")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      .add_option(
          "--api-key-file",
          flags.api_key_file,
          "A file of such keys, one a line; '#' begins a comment"
      )
      ->check(not_empty())
      ->type_name("FILE");
  command
      .add_option(
          "--allowed-origins",
          flags.allowed_origins,
          "Web pages that may use the server: origins, comma-separated, or '*'"
      )
      ->check(CLI::Validator(check_origin, ""))
      ->type_name("ORIGIN,...")
      ->delimiter(',')
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      .add_option(
          "--ssl-cert-file",
          http.ssl_cert_file,
          "Serve by TLS: the certificate and those that lead to its root, PEM"
      )
      ->check(not_empty())
      ->type_name("FILE");
  command
      .add_option(
          "--ssl-key-file", http.ssl_key_file, "The certificate's key, PEM"
      )
      ->check(not_empty())
      ->type_name("FILE");
  command
      .add_option(
          "--max-connections",
          http.limits.connections,
          "Most connections at once; the longest idle one makes room"
      )
      ->check(whole_number(1))
      ->capture_default_str();
}

void check_together(const HttpOptions& http) {
  if (http.ssl_cert_file.empty() == http.ssl_key_file.empty()) return;
  const bool key = http.ssl_cert_file.empty();
  throw CLI::ValidationError(
      key ? "--ssl-key-file" : "--ssl-cert-file",
      std::string("needs ") + (key ? "--ssl-cert-file" : "--ssl-key-file") +
          ", too"
  );
}

Result<AccessRules> access_rules(
    const AccessFlags& flags, const std::string& host
) {
  std::vector<std::string> keys = flags.api_keys;
  if (!flags.api_key_file.empty()) {
    auto file = read_api_key_file(flags.api_key_file);
    if (!file.ok()) return file.error();
    keys.insert(keys.end(), file->begin(), file->end());
  }
  auto made = ApiKeys::make(keys);
  if (!made.ok()) return made.error();
  auto origins = AllowedOrigins::make(flags.allowed_origins);
  if (!origins.ok()) return origins.error();
  return AccessRules{*std::move(made), *std::move(origins), host};
}

void renew_secrets(
    const AccessFlags& flags,
    const HttpOptions& http,
    ReplaceableGate& gate,
    HttpServer& server
) {
  const bool keys = !flags.api_key_file.empty();
  const bool certificate = !http.ssl_cert_file.empty();
  if (keys) renew_keys(flags, http.host, gate);
  if (certificate) renew_certificate(http, server);
  if (!keys && !certificate) {
    spdlog::info("renewal: there are no files of keys or certificates");
  }
}

void warn_of_open_doors(
    const AccessFlags& flags,
    const HttpOptions& http,
    const std::string& config_with_keys,
    const AccessRules& rules,
    const HttpServer& server
) {
  for (const std::string& path :
       {flags.api_key_file, http.ssl_key_file, config_with_keys}) {
    warn_if_exposed(path);
  }
  for (const char* variable :
       {"AFTERGLOW_API_KEY",
        "AFTERGLOW_API_KEY_FILE",
        "AFTERGLOW_SSL_CERT_FILE",
        "AFTERGLOW_SSL_KEY_FILE"}) {
    if (is_set_but_empty(variable)) {
      spdlog::warn("{} is set but empty, which counts as not set", variable);
    }
  }
  if (!rules.keys.empty()) return;
  if (!server.on_loopback()) {
    spdlog::warn(
        "anyone who can reach {} can use the server; --api-key ends that",
        server.url()
    );
  }
  if (rules.origins.all()) {
    spdlog::warn(
        "every web page that a browser here opens can use the server; name "
        "those that may with --allowed-origins, or set --api-key"
    );
  }
}

}  // namespace afterglow
