#include "api/verbose.h"

#include <cstdio>

namespace afterglow {

void print_statistics(const StepOutput& last, bool any_text) {
  std::fprintf(stderr, "\n==========\n");
  if (!any_text) {
    std::fprintf(stderr, "No text generated for this prompt\n");
  }
  std::fprintf(
      stderr,
      "Prompt: %zu tokens (%zu cached), %.3f tokens-per-sec\n"
      "Generation: %zu tokens, %.3f tokens-per-sec\n"
      "Peak memory: %.3f GB\n",
      last.prompt_tokens,
      last.cached_tokens,
      last.prompt_tps,
      last.generation_tokens,
      last.generation_tps,
      static_cast<double>(last.peak_memory) / 1e9
  );
}

}  // namespace afterglow
