#include "model/architectures/registry.h"

#include <array>
#include <string_view>

namespace afterglow {
namespace {

using Builder = Result<
    std::unique_ptr<Architecture>> (*)(const ModelConfig&, Weights&, Ops&);

struct Row {
  std::string_view name;
  std::string_view architecture;
  Builder build;
};

// Names in files to the network that computes them.
constexpr std::array kRegistry = {
    Row{"llama", "llama", make_llama},
    Row{"mistral", "llama", make_llama},
};

}  // namespace

Result<std::string> architecture_for(const std::string& name) {
  std::string known;
  for (const Row& row : kRegistry) {
    if (row.name == name) {
      return std::string(row.architecture);
    }
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  return Error{
      Code::kUnsupported,
      "architecture '" + name + "' is not supported; known: " + known};
}

Result<std::unique_ptr<Architecture>> make_architecture(
    const ModelConfig& config, Weights& weights, Ops& ops
) {
  for (const Row& row : kRegistry) {
    if (row.architecture == config.architecture) {
      return row.build(config, weights, ops);
    }
  }
  CHECK(false, "no architecture '" + config.architecture + "'");
}

}  // namespace afterglow
