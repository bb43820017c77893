#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace afterglow {

/// The programs of mlx_lm whose flags one of our commands takes.
enum class MlxProgram : std::uint8_t {
  kGenerate = 1,
  kChat = 2,
  kCachePrompt = 4,
  kServer = 8
};

/// Adds the program's flags that are known but not supported, hidden from the
/// help. Given, each ends parsing with its name and the reason.
void add_refused_flags(CLI::App& command, MlxProgram program);

/// Their names, with dashes.
std::vector<std::string> refused_flags(MlxProgram program);

}  // namespace afterglow
