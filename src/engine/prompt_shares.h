#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace afterglow {

/// A prompt that is being read.
struct PromptReader {
  std::size_t left = 0;  // tokens, at least 1
  std::string_view client;
};

/// How many tokens of each prompt a step reads; their sum is `budget`, or all
/// that is left where that is less.
///
/// To read all prompts evenly would be fair, but all would then be read late:
/// of eight equal ones, each would take the time of eight. To read the one
/// with the least left first gives the shortest mean time to a first token,
/// but a long prompt would not go on while short ones keep coming. So one half
/// of the budget is dealt out evenly, between clients and then between each
/// client's prompts, and the other goes to the prompts with the least left.
/// The short ones are read at once, and the longest is at most twice as late
/// as it would be if all were read evenly.
///
/// turn: counts the steps, so that what cannot be divided goes round.
std::vector<std::size_t> share_prompt_budget(
    std::size_t budget, std::span<const PromptReader> readers, std::size_t turn
);

}  // namespace afterglow
