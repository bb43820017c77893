#pragma once

#include <string>
#include <vector>

namespace afterglow {

/// Names of flags, without dashes.
struct KnownFlags {
  std::vector<std::string> command;  // what the command takes
  std::vector<std::string> others;   // what other commands take
};

/// What to tell of variables AFTERGLOW_... that nothing here reads, with the
/// one that was probably meant. Those of other commands' flags, of the
/// project's tests, and those that Kubernetes sets for a service named
/// afterglow or afterglow-... are not told of; values never are.
/// environment: NAME=VALUE, as in `environ`.
std::vector<std::string> unknown_variables(
    const std::vector<std::string>& environment, const KnownFlags& flags
);

/// The variable of a flag: AFTERGLOW_SOME_FLAG for some-flag.
std::string variable_of_flag(const std::string& name);

}  // namespace afterglow
