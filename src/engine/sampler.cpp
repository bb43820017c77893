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

std::uint64_t random_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

// The last n tokens; as in Python, where 0 comes to all of them.
std::span<const Token> last(std::span<const Token> tokens, std::size_t n) {
  return n == 0 ? tokens : tokens.last(std::min(n, tokens.size()));
}

// Calls change(logit) for each time a token occurs. Of some tokens nobody
// knows which they are.
template <class Change>
void change_each(
    std::span<float> logits, std::span<const Token> tokens, Change change
) {
  for (Token token : tokens) {
    if (token != kUnknownToken) {
      change(logits[token]);
    }
  }
}

// The same, but once for each token, however often it occurs.
template <class Change>
void change_once(
    std::span<float> logits, std::span<const Token> tokens, Change change
) {
  std::vector<bool> seen(logits.size());
  for (Token token : tokens) {
    if (token != kUnknownToken && !seen[token]) {
      seen[token] = true;
      change(logits[token]);
    }
  }
}

// In float's range; an infinity stays one.
float limited(double x) {
  constexpr double kMost = std::numeric_limits<float>::max();
  return static_cast<float>(std::isinf(x) ? x : std::clamp(x, -kMost, kMost));
}

}  // namespace

Sampler::Sampler(SamplingParams params)
    : params_(std::move(params)),
      seed_(params_.seed ? *params_.seed : random_seed()),
      kernels_(*select_kernels().value()),
      narrowing_(params_) {}

void Sampler::process(std::span<float> logits, std::span<const Token> history)
    const {
  // In double, where none of this overflows and which rounds to what float
  // arithmetic gives.
  for (auto [token, bias] : params_.logit_bias) {
    logits[token] = limited(double{logits[token]} + double{bias});
  }
  if (params_.repetition_penalty != 0) {
    constexpr float kLeast = std::numeric_limits<float>::min();
    double penalty = std::max(limited(params_.repetition_penalty), kLeast);
    change_once(
        logits,
        last(history, params_.repetition_context_size),
        [&](float& logit) {
          logit = limited(logit < 0 ? logit * penalty : logit / penalty);
        }
    );
  }
  if (params_.presence_penalty != 0) {
    double penalty = limited(params_.presence_penalty);
    change_once(
        logits,
        last(history, params_.presence_context_size),
        [&](float& logit) { logit = limited(logit - penalty); }
    );
  }
  if (params_.frequency_penalty != 0) {
    double penalty = limited(params_.frequency_penalty);
    change_each(
        logits,
        last(history, params_.frequency_context_size),
        [&](float& logit) { logit = limited(logit - penalty); }
    );
  }
}

Token Sampler::sample(std::span<const float> logits, std::uint64_t position) {
  CHECK(!logits.empty());
  if (params_.temperature == 0) {
    return static_cast<Token>(kernels_.argmax(logits.data(), logits.size()));
  }
  bool strike = uniform_at(seed_, position, kXtcDraw) < params_.xtc_probability;
  return draw(narrowing_.narrow(logits, strike), position);
}

// The token at whose weight the running sum passes a random part of the
// whole.
Token Sampler::draw(
    std::span<const Candidate> candidates, std::uint64_t position
) {
  weights_.resize(candidates.size());
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    weights_[i] = candidates[i].depth;
  }
  float top = weights_[kernels_.argmax(weights_.data(), weights_.size())];
  // At a temperature next to 0 its inverse would be infinite.
  auto cold = static_cast<float>(std::min<double>(
      1 / params_.temperature, std::numeric_limits<float>::max()
  ));
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
  return candidates[chosen].token;
}

double log_sum_exp(std::span<const float> logits) {
  const Kernels& kernels = *select_kernels().value();
  float largest = logits[kernels.argmax(logits.data(), logits.size())];
  double sum = kernels.exp_sum(logits.data(), logits.size(), largest);
  return largest + std::log(sum);
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
