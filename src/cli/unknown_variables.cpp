#include "cli/unknown_variables.h"

#include <algorithm>
#include <string_view>

#include "base/near_name.h"

namespace afterglow {
namespace {

constexpr std::string_view kPrefix = "AFTERGLOW_";

/// What the program reads besides its flags, behind the prefix.
constexpr const char* kOfProgram[] = {"CONFIG", "TARGET"};

constexpr const char* kOfTests[] = {
    "KILLS",
    "LOAD",
    "LONG_TESTS",
    "PROGRAM",
    "WRITE_GOLDEN",
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// NAME_SERVICE_HOST, NAME_SERVICE_PORT, NAME_SERVICE_PORT_HTTP,
/// NAME_PORT=tcp://..., NAME_PORT_8080_TCP, NAME_PORT_8080_TCP_ADDR and so on,
/// with a NAME that is AFTERGLOW or begins so.
/// Source: kubernetes.io, "Service", environment variables
bool is_of_kubernetes(std::string_view name, std::string_view value) {
  if (name.ends_with("_SERVICE_HOST")) return true;
  if (name.ends_with("_SERVICE_PORT")) return true;
  if (name.find("_SERVICE_PORT_") != name.npos) return true;
  constexpr std::string_view kPort = "_PORT_";
  const std::size_t at = name.find(kPort);
  const std::size_t number = at == name.npos ? name.size() : at + kPort.size();
  if (number < name.size() && is_digit(name[number])) return true;
  return name.ends_with("_PORT") && value.find("://") != value.npos;
}

/// SOME_FLAG for some-flag.
std::string upper(std::string name) {
  for (char& c : name) {
    if (c == '-') c = '_';
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return name;
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

std::vector<std::string> unknown_variables(
    const std::vector<std::string>& environment, const KnownFlags& flags
) {
  std::vector<std::string> meant(std::begin(kOfProgram), std::end(kOfProgram));
  for (const std::string& flag : flags.command) meant.push_back(upper(flag));
  std::vector<std::string> silent(std::begin(kOfTests), std::end(kOfTests));
  for (const std::string& flag : flags.others) silent.push_back(upper(flag));
  std::vector<std::string> told;
  for (const std::string_view entry : environment) {
    const std::string_view name = entry.substr(0, entry.find('='));
    if (!name.starts_with(kPrefix)) continue;
    const std::string_view rest = name.substr(kPrefix.size());
    if (contains(meant, rest) || contains(silent, rest)) continue;
    if (is_of_kubernetes(name, entry.substr(name.size()))) continue;
    told.push_back(
        std::string(name) + " is set, but there is no such variable" +
        did_you_mean(rest, meant, std::string(kPrefix))
    );
  }
  std::ranges::sort(told);
  return told;
}

std::string variable_of_flag(const std::string& name) {
  return std::string(kPrefix) + upper(name);
}

}  // namespace afterglow
