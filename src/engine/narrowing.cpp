#include "engine/narrowing.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "kernels/dispatch/dispatch.h"

namespace afterglow {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
/// Below the top there is nothing deeper that a draw could reach.
constexpr double kEverything = std::numeric_limits<float>::max();

double weight(const Candidate& candidate) {
  return std::exp(static_cast<double>(candidate.depth));
}

}  // namespace

Narrowing::Narrowing(const SamplingParams& params)
    : top_p_(params.top_p),
      min_p_(params.min_p),
      min_tokens_to_keep_(params.min_tokens_to_keep),
      top_k_(params.top_k),
      xtc_(params.xtc_probability > 0),
      xtc_threshold_(params.xtc_threshold),
      xtc_special_tokens_(params.xtc_special_tokens),
      kernels_(*select_kernels().value()) {}

std::span<const Candidate> Narrowing::narrow(
    std::span<const float> logits, bool strike
) {
  CHECK(!logits.empty());
  float largest = logits[kernels_.argmax(logits.data(), logits.size())];
  CHECK(largest > -kInfinity, "every token is excluded");
  // Of top-p; 0: it is off.
  double wanted_mass =
      top_p_ > 0 && top_p_ < 1
          ? top_p_ * kernels_.exp_sum(logits.data(), logits.size(), largest)
          : 0;
  gather(logits, largest, wanted_mass);
  if (wanted_mass > 0) {
    keep_top_p(wanted_mass);
  }
  if (min_p_ > 0) {
    keep_min_p();
  }
  if (xtc_ && strike) {
    exclude_top_choices();
  }
  if (top_k_ > 0 && top_k_ < candidates_.size()) {
    keep_top_k();
  }
  CHECK(!candidates_.empty());
  return candidates_;
}

// Makes candidates, in the order of tokens, of all that the filters and the
// draw could choose: those no deeper below the most likely one than a reach
// that grows until it is far enough.
void Narrowing::gather(
    std::span<const float> logits, float largest, double wanted_mass
) {
  bool narrows = wanted_mass > 0 || min_p_ > 0 || top_k_ > 0;
  double least = narrows ? 12.0 : kEverything;
  for (double reach : {least, 4 * least, kEverything}) {
    candidates_.clear();
    for (std::size_t i = 0; i < logits.size(); ++i) {
      float depth = logits[i] == largest ? 0 : logits[i] - largest;
      if (depth >= -reach) {
        candidates_.push_back({static_cast<Token>(i), depth});
      }
    }
    if (reach >= kEverything || all_that_matter(reach, wanted_mass)) {
      return;
    }
  }
}

// Whether tokens deeper than `reach` would be dropped by the first filter
// anyway.
bool Narrowing::all_that_matter(double reach, double wanted_mass) const {
  if (wanted_mass > 0) {
    double mass = 0;
    for (const Candidate& candidate : candidates_) {
      mass += weight(candidate);
    }
    return mass >= wanted_mass;
  }
  if (min_p_ > 0) {
    return reach > -std::log(min_p_) &&
           candidates_.size() >= min_tokens_to_keep_;
  }
  return top_k_ > 0 && !xtc_ && candidates_.size() >= top_k_;
}

// Keeps the most likely tokens until they have the mass, and all that are as
// likely as the last of them.
void Narrowing::keep_top_p(double wanted_mass) {
  auto less_likely = [](const Candidate& a, const Candidate& b) {
    return a.depth < b.depth;
  };
  std::make_heap(candidates_.begin(), candidates_.end(), less_likely);
  double mass = 0;
  auto heap_end = candidates_.end();
  float threshold = candidates_.front().depth;
  while (heap_end != candidates_.begin()) {
    Candidate next = candidates_.front();
    if (mass >= wanted_mass && next.depth < threshold) {
      break;
    }
    threshold = next.depth;
    mass += weight(next);
    std::pop_heap(candidates_.begin(), heap_end, less_likely);
    --heap_end;
  }
  candidates_.erase(candidates_.begin(), heap_end);
}

void Narrowing::keep_min_p() {
  std::size_t keep = std::min(min_tokens_to_keep_, candidates_.size());
  auto rest = candidates_.begin() + static_cast<std::ptrdiff_t>(keep);
  std::nth_element(
      candidates_.begin(),
      rest - 1,
      candidates_.end(),
      [](const Candidate& a, const Candidate& b) { return a.depth > b.depth; }
  );
  auto threshold = static_cast<float>(std::log(min_p_));
  candidates_.erase(
      std::remove_if(
          rest,
          candidates_.end(),
          [&](const Candidate& c) { return c.depth < threshold; }
      ),
      candidates_.end()
  );
}

// Leaves out all tokens above the threshold but the least likely of them.
void Narrowing::exclude_top_choices() {
  double total = 0;
  for (const Candidate& candidate : candidates_) {
    total += weight(candidate);
  }
  double threshold = std::log(xtc_threshold_ * total);
  float least = kInfinity;
  for (const Candidate& candidate : candidates_) {
    if (candidate.depth > threshold) {
      least = std::min(least, candidate.depth);
    }
  }
  auto special = [&](Token token) {
    const auto& tokens = xtc_special_tokens_;
    return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
  };
  candidates_.erase(
      std::remove_if(
          candidates_.begin(),
          candidates_.end(),
          [&](const Candidate& c) {
            return c.depth > least && !special(c.token);
          }
      ),
      candidates_.end()
  );
}

void Narrowing::keep_top_k() {
  auto k = static_cast<std::ptrdiff_t>(top_k_);
  std::nth_element(
      candidates_.begin(),
      candidates_.begin() + k - 1,
      candidates_.end(),
      [](const Candidate& a, const Candidate& b) {
        return a.depth != b.depth ? a.depth > b.depth : a.token < b.token;
      }
  );
  candidates_.erase(candidates_.begin() + k, candidates_.end());
}

}  // namespace afterglow
