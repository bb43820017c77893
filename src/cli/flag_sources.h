#pragma once

#include <map>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace afterglow {

/// Where a command's flags come from besides its line: environment variables
/// (--some-flag is AFTERGLOW_SOME_FLAG; an empty one counts as none, and so
/// does a port of `tcp://...`, which is Kubernetes') and the file that --config
/// names. The line wins over the environment, that over the file, and that over
/// the defaults.
class FlagSources {
 public:
  /// Adds --config.
  void add_flags(CLI::App& command);
  /// Sets the flags that the line has not. Requires: the line was parsed.
  /// Throws CLI::ParseError for what the file says about no flag, and for a
  /// value that a flag does not take; it names file and line, or variable.
  void apply(CLI::App& command);
  /// All flags as a file that --config takes, each with where it is from. API
  /// keys are left out. Requires: applied.
  std::string print(CLI::App& command) const;
  /// What to tell of variables that nothing here reads, see unknown_variables.
  /// Requires: the command has a parent.
  static std::vector<std::string> unknown_variables(const CLI::App& command);
  /// The file that --config names, when an API key is in it; else "".
  std::string file_with_keys() const;

 private:
  void apply_file(CLI::App& command);

  std::string config_;
  std::map<const CLI::Option*, std::string> from_;
};

/// Sets from the environment those flags of a command that say how a model is
/// loaded, cached and sampled, and that the line has not; but --model, which
/// other things come before. Requires and throws: as apply.
void apply_shared_environment(CLI::App& command);

}  // namespace afterglow
