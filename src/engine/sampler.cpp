#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "base/check.h"
#include "engine/random.h"
#include "kernels/dispatch/dispatch.h"

namespace afterglow {
namespace {

// Draws that belong to one position.
constexpr std::uint32_t kTokenDraw = 0;
constexpr std::uint32_t kXtcDraw = 1;

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

bool narrows_by_mass(const SamplingParams& params) {
  return params.top_p > 0 && params.top_p < 1;
}

// Whether some filter drops tokens far below the most likely one.
bool narrows(const SamplingParams& params) {
  return narrows_by_mass(params) || params.min_p > 0 || params.top_k > 0;
}

std::uint64_t random_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

std::span<const Token> last(std::span<const Token> tokens, std::size_t n) {
  return tokens.last(std::min(n, tokens.size()));
}

// Each token once: a penalty that mlx_lm sets rather than accumulates.
std::vector<Token> distinct(std::span<const Token> tokens) {
  std::vector<Token> result(tokens.begin(), tokens.end());
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

}  // namespace

Sampler::Sampler(SamplingParams params)
    : params_(std::move(params)),
      seed_(params_.seed ? *params_.seed : random_seed()),
      kernels_(*select_kernels().value()) {}

void Sampler::process(std::span<float> logits, std::span<const Token> history)
    const {
  for (auto [token, bias] : params_.logit_bias) {
    logits[token] += bias;
  }
  if (params_.repetition_penalty != 0) {
    auto penalty = static_cast<float>(params_.repetition_penalty);
    for (Token token :
         distinct(last(history, params_.repetition_context_size))) {
      float& logit = logits[token];
      logit = logit < 0 ? logit * penalty : logit / penalty;
    }
  }
  if (params_.presence_penalty != 0) {
    auto penalty = static_cast<float>(params_.presence_penalty);
    for (Token token : distinct(last(history, params_.presence_context_size))) {
      logits[token] -= penalty;
    }
  }
  if (params_.frequency_penalty != 0) {
    auto penalty = static_cast<float>(params_.frequency_penalty);
    for (Token token : last(history, params_.frequency_context_size)) {
      logits[token] -= penalty;
    }
  }
}

Token Sampler::sample(std::span<const float> logits, std::uint64_t position) {
  CHECK(!logits.empty());
  std::size_t best = kernels_.argmax(logits.data(), logits.size());
  if (params_.temperature == 0) {
    return static_cast<Token>(best);
  }
  float largest = logits[best];
  // Of top-p; 0: it is off.
  double wanted_mass =
      narrows_by_mass(params_)
          ? params_.top_p *
                kernels_.exp_sum(logits.data(), logits.size(), largest)
          : 0;
  gather(logits, largest, wanted_mass);
  if (wanted_mass > 0) {
    keep_top_p(wanted_mass);
  }
  if (params_.min_p > 0) {
    keep_min_p();
  }
  if (params_.xtc_probability > 0) {
    exclude_top_choices(position);
  }
  if (params_.top_k > 0) {
    keep_top_k();
  }
  return draw(position);
}

// Makes candidates, in the order of tokens, of all that the filters and the
// draw could choose: those no deeper below the most likely one than a reach
// that grows until it is far enough.
void Sampler::gather(
    std::span<const float> logits, float largest, double wanted_mass
) {
  double least = narrows(params_) ? 12.0 : kNoLimit;
  for (double reach : {least, 4 * least, kNoLimit}) {
    candidates_.clear();
    for (std::size_t i = 0; i < logits.size(); ++i) {
      float depth = logits[i] - largest;
      if (depth >= -reach) {
        candidates_.push_back({static_cast<Token>(i), depth});
      }
    }
    if (reach == kNoLimit || all_that_matter(reach, wanted_mass)) {
      return;
    }
  }
}

// Whether tokens deeper than `reach` would be dropped by the first filter
// anyway.
bool Sampler::all_that_matter(double reach, double wanted_mass) const {
  if (wanted_mass > 0) {
    double mass = 0;
    for (const Candidate& candidate : candidates_) {
      mass += std::exp(static_cast<double>(candidate.depth));
    }
    return mass >= wanted_mass;
  }
  if (params_.min_p > 0) {
    return reach > -std::log(params_.min_p) &&
           candidates_.size() >= params_.min_tokens_to_keep;
  }
  return params_.top_k > 0 && params_.xtc_probability == 0 &&
         candidates_.size() >= params_.top_k;
}

// Keeps the most likely tokens until they have the mass, and all that are as
// likely as the last of them.
void Sampler::keep_top_p(double wanted_mass) {
  auto less_likely = [](const Candidate& a, const Candidate& b) {
    return a.depth < b.depth;
  };
  std::make_heap(candidates_.begin(), candidates_.end(), less_likely);
  double mass = 0;
  auto heap_end = candidates_.end();
  float threshold = candidates_.front().depth;
  while (heap_end != candidates_.begin()) {
    float next = candidates_.front().depth;
    if (mass >= wanted_mass && next < threshold) {
      break;
    }
    threshold = next;
    mass += std::exp(static_cast<double>(next));
    std::pop_heap(candidates_.begin(), heap_end, less_likely);
    --heap_end;
  }
  candidates_.erase(candidates_.begin(), heap_end);
}

void Sampler::keep_min_p() {
  auto more_likely = [](const Candidate& a, const Candidate& b) {
    return a.depth > b.depth;
  };
  std::size_t keep = std::min(params_.min_tokens_to_keep, candidates_.size());
  std::nth_element(
      candidates_.begin(),
      candidates_.begin() + static_cast<std::ptrdiff_t>(keep) - 1,
      candidates_.end(),
      more_likely
  );
  auto threshold = static_cast<float>(std::log(params_.min_p));
  auto rest = candidates_.begin() + static_cast<std::ptrdiff_t>(keep);
  candidates_.erase(
      std::remove_if(
          rest,
          candidates_.end(),
          [&](const Candidate& c) { return c.depth < threshold; }
      ),
      candidates_.end()
  );
}

// XTC: sometimes leaves out all tokens above the threshold but the least
// likely of them.
void Sampler::exclude_top_choices(std::uint64_t position) {
  if (uniform_at(seed_, position, kXtcDraw) > params_.xtc_probability) {
    return;
  }
  double total = 0;
  for (const Candidate& candidate : candidates_) {
    total += std::exp(static_cast<double>(candidate.depth));
  }
  auto probability = [&](const Candidate& candidate) {
    return std::exp(static_cast<double>(candidate.depth)) / total;
  };
  double least = kNoLimit;
  for (const Candidate& candidate : candidates_) {
    double p = probability(candidate);
    if (p > params_.xtc_threshold) {
      least = std::min(least, p);
    }
  }
  auto special = [&](Token token) {
    const auto& tokens = params_.xtc_special_tokens;
    return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
  };
  candidates_.erase(
      std::remove_if(
          candidates_.begin(),
          candidates_.end(),
          [&](const Candidate& c) {
            return probability(c) > least && !special(c.token);
          }
      ),
      candidates_.end()
  );
}

void Sampler::keep_top_k() {
  if (params_.top_k >= candidates_.size()) {
    return;
  }
  auto k = static_cast<std::ptrdiff_t>(params_.top_k);
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

// The token at whose weight the running sum passes a random part of the
// whole.
Token Sampler::draw(std::uint64_t position) {
  CHECK(!candidates_.empty());
  weights_.resize(candidates_.size());
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    weights_[i] = candidates_[i].depth;
  }
  float top = weights_[kernels_.argmax(weights_.data(), weights_.size())];
  auto cold = static_cast<float>(1 / params_.temperature);
  for (float& weight : weights_) {
    weight = (weight - top) * cold;
  }
  kernels_.exp(weights_.data(), weights_.size(), weights_.data());
  double parts[8] = {};  // apart, so that no sum waits for the one before
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    parts[i % 8] += weights_[i];
  }
  double total = std::accumulate(parts, parts + 8, 0.0);
  double left = uniform_at(seed_, position, kTokenDraw) * total;
  std::size_t chosen = weights_.size();
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (weights_[i] > 0) {
      chosen = i;
    }
    left -= weights_[i];
    if (left < 0) {
      break;
    }
  }
  CHECK(chosen < weights_.size());
  return candidates_[chosen].token;
}

double log_sum_exp(std::span<const float> logits) {
  const Kernels& kernels = *select_kernels().value();
  float largest = logits[kernels.argmax(logits.data(), logits.size())];
  return largest +
         std::log(kernels.exp_sum(logits.data(), logits.size(), largest));
}

std::vector<TokenLogprob> top_logprobs(
    std::span<const float> logits, double log_sum, std::size_t n
) {
  std::vector<Token> order(logits.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = static_cast<Token>(i);
  }
  n = std::min(n, order.size());
  std::partial_sort(
      order.begin(),
      order.begin() + static_cast<std::ptrdiff_t>(n),
      order.end(),
      [&](Token a, Token b) {
        return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
      }
  );
  std::vector<TokenLogprob> result;
  for (std::size_t i = 0; i < n; ++i) {
    result.push_back({order[i], static_cast<float>(logits[order[i]] - log_sum)}
    );
  }
  return result;
}

}  // namespace afterglow
