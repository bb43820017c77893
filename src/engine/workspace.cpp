#include "engine/workspace.h"

#include <algorithm>
#include <cmath>

#include "base/page.h"

namespace afterglow {

Workspace workspace_of(
    const LoadedModel& model, std::size_t step_tokens, std::size_t sequences
) {
  // A layer of width h has about 12 h^2 weights: 4 in attention, 8 in the
  // MLP. A token's values take about 16 h floats: the hidden state and its
  // norm, the projections, gate and up, and the inputs in integers.
  double layers =
      static_cast<double>(std::max<std::size_t>(1, model.layout.layers.size()));
  double width = std::sqrt(static_cast<double>(model.parameters) / layers / 12);
  double token_bytes = 16 * width * sizeof(float);

  const std::uint64_t logits = model.vocab_size * sizeof(float);
  Workspace workspace;
  workspace.steps = static_cast<std::uint64_t>(
      token_bytes * static_cast<double>(step_tokens + sequences)
  );
  workspace.steps += logits * sequences;
  workspace.steps += PagePool::kSpareBuffers * model.layout.page_bytes();
  // Its logits, what the sampler makes of them, and an answer that its client
  // is slow to take: the server cuts those who lag by more.
  constexpr std::uint64_t kUnreadAnswer = 1 << 20;
  workspace.request = 2 * logits + kUnreadAnswer;
  return workspace;
}

}  // namespace afterglow
