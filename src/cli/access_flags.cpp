#include "cli/access_flags.h"

#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "server/private_file.h"

namespace afterglow {

void add_access_flags(
    CLI::App& command, AccessFlags& flags, HttpOptions& http
) {
  command
      .add_option(
          "--api-key",
          flags.api_keys,
          "A key that opens the server (repeatable); without any it is open"
      )
      ->type_name("KEY")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      .add_option(
          "--api-key-file",
          flags.api_key_file,
          "A file of such keys, one a line; '#' begins a comment"
      )
      ->type_name("FILE");
  command
      .add_option(
          "--allowed-origins",
          flags.allowed_origins,
          "Web pages that may use the server: origins, comma-separated, or '*'"
      )
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
      ->type_name("FILE");
  command
      .add_option(
          "--ssl-key-file", http.ssl_key_file, "The certificate's key, PEM"
      )
      ->type_name("FILE");
  command
      .add_option(
          "--max-connections",
          http.limits.connections,
          "Most connections at once; the longest idle one makes room"
      )
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
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

void warn_of_open_doors(
    const AccessFlags& flags,
    const HttpOptions& http,
    const std::string& config_with_keys,
    const AccessRules& rules,
    const HttpServer& server
) {
  for (const std::string& path :
       {flags.api_key_file, http.ssl_key_file, config_with_keys}) {
    if (is_exposed(path)) {
      spdlog::warn(
          "others than its owner may read or change {}; chmod 600 ends that",
          path
      );
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
