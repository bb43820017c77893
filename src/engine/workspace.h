#pragma once

#include <cstddef>
#include <cstdint>

#include "model/model.h"

namespace afterglow {

/// What computing takes besides weights and KV, in bytes.
struct Workspace {
  std::uint64_t steps = 0;    // once, for all steps
  std::uint64_t request = 0;  // for each that runs
};

/// An estimate, rather too much than too little.
/// step_tokens: of the largest step. sequences: of the most that run at once.
Workspace workspace_of(
    const LoadedModel& model, std::size_t step_tokens, std::size_t sequences
);

}  // namespace afterglow
