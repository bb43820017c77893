#include "api/token_chooser.h"

#include <cmath>
#include <limits>
#include <string>

#include "api/raise.h"

namespace afterglow {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Throws: kInvalidArgument for logits that leave nothing to choose.
void check(const std::vector<float>& logits) {
  bool any = false;
  for (float logit : logits) {
    if (std::isnan(logit) || logit == kInfinity) {
      raise(
          {Code::kInvalidArgument,
           "[generate] a logit is not a number or infinite after the logits "
           "processors"}
      );
    }
    any = any || logit > -kInfinity;
  }
  if (!any) {
    raise(
        {Code::kInvalidArgument,
         "[generate] the logits processors leave no token: all logits are "
         "-infinity"}
    );
  }
}

}  // namespace

TokenOut TokenChooser::choose(
    const std::vector<Token>& tokens, std::vector<float> logits
) {
  sampler_.process(logits, tokens);
  for (const LogitsProcessor& process : options_.logits_processors) {
    process(tokens, logits);
  }
  check(logits);
  TokenOut out;
  double log_sum = 0;  // of logits; 0 once they are log-probabilities
  if (options_.sampler || options_.logprobs) log_sum = log_sum_exp(logits);
  if (options_.sampler) {
    for (float& logit : logits) {
      logit = static_cast<float>(logit - log_sum);
    }
    log_sum = 0;
    out.token = options_.sampler(logits);
    if (out.token < 0 || static_cast<std::size_t>(out.token) >= logits.size()) {
      raise(
          {Code::kInvalidArgument,
           "[generate] the sampler chose token " + std::to_string(out.token) +
               ", but the vocabulary has " + std::to_string(logits.size())}
      );
    }
  } else {
    out.token = sampler_.sample(logits, tokens.size());
  }
  if (options_.logprobs) {
    out.logprob = static_cast<float>(logits[out.token] - log_sum);
    out.top_logprobs = top_logprobs(logits, log_sum, options_.top_logprobs);
  }
  return out;
}

}  // namespace afterglow
