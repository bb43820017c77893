#include "engine/prompt_shares.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace afterglow {
namespace {

/// Divides evenly, what is left over to those behind `turn`.
std::size_t even_part(
    std::size_t whole, std::size_t count, std::size_t index, std::size_t turn
) {
  std::size_t place = (index + count - turn % count) % count;
  return whole / count + (place < whole % count ? 1 : 0);
}

}  // namespace

std::vector<std::size_t> share_prompt_budget(
    std::size_t budget, std::span<const PromptReader> readers, std::size_t turn
) {
  std::vector<std::size_t> shares(readers.size());
  std::map<std::string_view, std::vector<std::size_t>> clients;
  for (std::size_t i = 0; i < readers.size(); ++i) {
    clients[readers[i].client].push_back(i);
  }
  std::size_t rest = budget;
  std::size_t number = 0;
  for (const auto& [client, own] : clients) {
    // Turns of the clients pass before those of one client's prompts.
    std::size_t part =
        even_part((budget + 1) / 2, clients.size(), number++, turn);
    for (std::size_t i = 0; i < own.size(); ++i) {
      std::size_t share = even_part(part, own.size(), i, turn / clients.size());
      shares[own[i]] = std::min(share, readers[own[i]].left);
      rest -= shares[own[i]];
    }
  }
  std::vector<std::size_t> shortest_first(readers.size());
  std::iota(shortest_first.begin(), shortest_first.end(), std::size_t{0});
  std::stable_sort(
      shortest_first.begin(),
      shortest_first.end(),
      [&](std::size_t a, std::size_t b) {
        return readers[a].left < readers[b].left;
      }
  );
  for (std::size_t i : shortest_first) {
    std::size_t more = std::min(rest, readers[i].left - shares[i]);
    shares[i] += more;
    rest -= more;
  }
  return shares;
}

}  // namespace afterglow
