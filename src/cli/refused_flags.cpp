#include "cli/refused_flags.h"

#include <CLI/CLI.hpp>

namespace afterglow {
namespace {

constexpr unsigned kGenerate = static_cast<unsigned>(MlxProgram::kGenerate);
constexpr unsigned kChat = static_cast<unsigned>(MlxProgram::kChat);
constexpr unsigned kCachePrompt =
    static_cast<unsigned>(MlxProgram::kCachePrompt);
constexpr unsigned kServer = static_cast<unsigned>(MlxProgram::kServer);
constexpr unsigned kAll = kGenerate | kChat | kCachePrompt | kServer;

struct RefusedFlag {
  const char* name;
  const char* also;  // another spelling, or ""
  unsigned programs;
  const char* reason;
};

constexpr const char* kKvBits = "KV is kept in 16 bits, never quantized";
constexpr const char* kDraft = "there is no speculative decoding";
constexpr const char* kTemplates =
    "the model's own chat template is used; --chat-template replaces it";

// Source: mlx_lm 0.32.2, the argument parsers of the four programs
constexpr RefusedFlag kFlags[] = {
    {"--adapter-path",
     "",
     kAll,
     "adapters cannot be loaded; mlx_lm.fuse makes a model with one in it"},
    {"--draft-model", "", kGenerate | kServer, kDraft},
    {"--image", "", kGenerate, "models see text only"},
    {"--kv-bits", "", kGenerate | kCachePrompt | kServer, kKvBits},
    {"--kv-group-size", "", kGenerate | kCachePrompt | kServer, kKvBits},
    {"--max-kv-size",
     "",
     kGenerate | kChat | kCachePrompt,
     "KV of the whole context is kept, there is no rotating cache"},
    {"--num-draft-tokens", "", kGenerate | kServer, kDraft},
    {"--pipeline", "", kChat | kServer, "a model runs on one machine"},
    {"--prefill-step-size",
     "",
     kGenerate | kChat,
     "prompts are read in steps sized by time, some dozens of tokens each, and "
     "answers do not depend on it"},
    {"--quantize-activations",
     "-q",
     kGenerate,
     "it is for MLX's products of quantized matrices; --activations says how "
     "the CPU rounds inputs"},
    {"--quantized-kv-start", "", kGenerate | kCachePrompt | kServer, kKvBits},
    {"--trust-remote-code", "", kAll, "no code of a model is ever run"},
    {"--use-default-chat-template", "", kGenerate | kServer, kTemplates},
};

}  // namespace

void add_refused_flags(CLI::App& command, MlxProgram program) {
  for (const RefusedFlag& flag : kFlags) {
    if ((flag.programs & static_cast<unsigned>(program)) == 0) continue;
    const std::string spelling =
        *flag.also == 0 ? flag.name : std::string(flag.also) + "," + flag.name;
    const std::string message =
        std::string(flag.name) + " is not supported: " + flag.reason + ".";
    command
        .add_option_function<std::vector<std::string>>(
            spelling,
            [message](const std::vector<std::string>&) {
              throw CLI::ParseError(
                  message, static_cast<int>(CLI::ExitCodes::ExtrasError)
              );
            }
        )
        ->expected(0, -1)
        ->group("");
  }
}

std::vector<std::string> refused_flags(MlxProgram program) {
  std::vector<std::string> names;
  for (const RefusedFlag& flag : kFlags) {
    if ((flag.programs & static_cast<unsigned>(program)) != 0) {
      names.emplace_back(flag.name);
    }
  }
  return names;
}

}  // namespace afterglow
