#include "cli/flag_sources.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/near_name.h"
#include "cli/settings_file.h"
#include "cli/unknown_variables.h"

namespace afterglow {
namespace {

constexpr char kSecret[] = "api-key";
/// Kubernetes sets AFTERGLOW_PORT to such a value, for a service of our name.
constexpr char kServiceAddress[] = "tcp://";

[[noreturn]] void fail(const std::string& message) {
  throw CLI::ParseError(message, CLI::ExitCodes::ValidationError);
}

/// Its long name without dashes, or "".
std::string name_of(const CLI::Option& option) {
  const auto& names = option.get_lnames();
  return names.empty() ? "" : names.back();
}

/// Those that a line may have but neither a file nor a variable, such as
/// --help.
bool only_on_the_line(const CLI::Option& option) {
  return !option.get_configurable() || name_of(option).empty();
}

bool is_refused(const CLI::Option& option) {
  return option.get_group().empty();
}

/// One that takes no value.
bool is_switch(const CLI::Option& option) {
  return option.get_expected_min() == 0 && !is_refused(option);
}

bool is_list(const CLI::Option& option) {
  return option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll &&
         !is_switch(option);
}

std::string variable_of(const CLI::Option& option) {
  return variable_of_flag(name_of(option));
}

/// Long names, without dashes, of what a file or a variable may set; but the
/// refused ones, which nobody means.
std::vector<std::string> names_of_flags(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    if (only_on_the_line(*option) || is_refused(*option)) continue;
    names.push_back(name_of(*option));
  }
  return names;
}

/// The same of all commands below one.
void add_names_below(const CLI::App& app, std::vector<std::string>& names) {
  for (const CLI::App* command : app.get_subcommands({})) {
    for (std::string& name : names_of_flags(*command)) {
      names.push_back(std::move(name));
    }
    add_names_below(*command, names);
  }
}

/// The variable's value; empty where it is not set.
std::string environment(const std::string& variable) {
  const char* value = std::getenv(variable.c_str());
  return value == nullptr ? "" : value;
}

std::string switch_value(const std::string& text) {
  for (const char* yes : {"true", "1", "yes", "on"}) {
    if (text == yes) return "true";
  }
  for (const char* no : {"false", "0", "no", "off"}) {
    if (text == no) return "false";
  }
  fail("'" + text + "' is neither true nor false");
}

/// Sets a flag as the line would have; a fault is told with its source.
void set(
    CLI::Option& option,
    const std::vector<std::string>& values,
    const std::string& source
) {
  try {
    for (const std::string& value : values) {
      option.add_result(is_switch(option) ? switch_value(value) : value);
    }
    option.run_callback();
  } catch (const CLI::ParseError& error) {
    fail(source + ": " + error.what());
  }
}

/// False: there is no such variable, or it is not meant for us.
bool set_from_environment(CLI::Option& option) {
  const std::string variable = variable_of(option);
  const std::string value = environment(variable);
  if (value.empty()) return false;
  if (name_of(option) == "port" && value.starts_with(kServiceAddress)) {
    return false;
  }
  set(option, {value}, variable);
  return true;
}

std::string read_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      std::fopen(path.c_str(), "rb"), std::fclose
  );
  std::string text;
  char piece[4096];
  while (file != nullptr) {
    const std::size_t count = std::fread(piece, 1, sizeof piece, file.get());
    text.append(piece, count);
    if (count < sizeof piece) break;
  }
  if (file == nullptr || std::ferror(file.get()) != 0) {
    fail("--config: cannot read " + path + ": " + std::strerror(errno));
  }
  return text;
}

/// Without what could end a comment.
std::string in_a_comment(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text;
}

std::string list_of(const std::vector<std::string>& values) {
  std::string list;
  for (const std::string& value : values) {
    list += (list.empty() ? "" : ", ") + setting_value(value);
  }
  return "[" + list + "]";
}

}  // namespace

void FlagSources::add_flags(CLI::App& command) {
  command
      .add_option(
          "--config",
          config_,
          "Take flags from this file (`port = 8080`, as TOML)"
      )
      ->type_name("FILE")
      ->configurable(false);
}

void FlagSources::apply(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    if (option->count() > 0) {
      from_[option] = "command line";
    } else if (!only_on_the_line(*option) && set_from_environment(*option)) {
      from_[option] = variable_of(*option);
    }
  }
  if (config_.empty()) config_ = environment("AFTERGLOW_CONFIG");
  if (!config_.empty()) apply_file(command);
}

void FlagSources::apply_file(CLI::App& command) {
  const auto settings = parse_settings(read_file(config_));
  if (!settings.ok()) fail(config_ + ":" + settings.error().message);
  for (const Setting& setting : *settings) {
    const std::string source = config_ + ":" + std::to_string(setting.line);
    CLI::Option* option = command.get_option_no_throw("--" + setting.key);
    if (option == nullptr || only_on_the_line(*option)) {
      fail(
          source + ": '" + setting.key + "' is no flag that " +
          command.get_name() + " takes from a file" +
          did_you_mean(setting.key, names_of_flags(command), "'", "'")
      );
    }
    if (setting.list && !is_list(*option)) {
      fail(source + ": '" + setting.key + "' takes one value, not a list");
    }
    if (setting.key == kSecret && setting.values.empty()) {
      fail(source + ": '" + setting.key + "' must not be empty");
    }
    const bool taken =
        from_.emplace(option, source).second && !setting.values.empty();
    if (taken) set(*option, setting.values, source);
  }
}

std::string FlagSources::print(CLI::App& command) const {
  std::string text = "# afterglow " + command.get_name() + "\n";
  for (const CLI::Option* option : command.get_options()) {
    if (only_on_the_line(*option) || is_refused(*option)) continue;
    const std::string name = name_of(*option);
    const auto from = from_.find(option);
    const std::string source =
        from == from_.end() ? "default" : in_a_comment(from->second);
    const auto values = option->reduced_results();
    if (name == kSecret && !values.empty()) {
      text += "# " + name + " is not shown; " + source + "\n";
    } else if (is_list(*option) && !values.empty()) {
      text += name + " = " + list_of(values) + "  # " + source + "\n";
    } else if (!values.empty()) {
      text +=
          name + " = " + setting_value(values.front()) + "  # " + source + "\n";
    } else if (is_switch(*option)) {
      text += name + " = false  # default\n";
    } else if (const auto& known = option->get_default_str(); !known.empty()) {
      text += name + " = " + setting_value(known) + "  # default\n";
    } else {
      text += "# " + name + " is not set\n";
    }
  }
  return text;
}

std::vector<std::string> FlagSources::unknown_variables(const CLI::App& command
) {
  KnownFlags flags;
  flags.command = names_of_flags(command);
  add_names_below(*command.get_parent(), flags.others);
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    all.emplace_back(*entry);
  }
  return afterglow::unknown_variables(all, flags);
}

std::string FlagSources::file_with_keys() const {
  for (const auto& [option, source] : from_) {
    if (name_of(*option) == kSecret && source.starts_with(config_ + ":")) {
      return config_;
    }
  }
  return {};
}

void apply_shared_environment(CLI::App& command) {
  constexpr const char* kShared[] = {
      "--activations",
      "--backend",
      "--chat-template",
      "--memory-limit",
      "--min-p",
      "--prompt-cache-bytes",
      "--prompt-cache-daily-writes",
      "--prompt-cache-dir",
      "--prompt-cache-disk-bytes",
      "--prompt-cache-size",
      "--prompt-cache-ttl",
      "--temp",
      "--threads",
      "--top-k",
      "--top-p",
  };
  for (const char* name : kShared) {
    CLI::Option* option = command.get_option_no_throw(name);
    if (option != nullptr && option->count() == 0) {
      set_from_environment(*option);
    }
  }
}

}  // namespace afterglow
