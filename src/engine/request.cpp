#include "engine/request.h"

#include <cmath>
#include <string>
#include <utility>

namespace afterglow {
namespace {

SamplingFault out_of_range(const char* field, const std::string& range) {
  return {field, std::string(field) + " must be " + range};
}

// False for NaN too.
bool within(double value, double low, double high) {
  return value >= low && value <= high;
}

}  // namespace

std::optional<SamplingFault> find_fault(
    const SamplingParams& params, std::size_t vocab_size
) {
  if (!(params.temperature >= 0) || !std::isfinite(params.temperature)) {
    return out_of_range("temperature", "a finite number of at least 0");
  }
  if (!within(params.top_p, 0, 1)) {
    return out_of_range("top_p", "between 0 and 1");
  }
  if (!within(params.min_p, 0, 1)) {
    return out_of_range("min_p", "between 0 and 1");
  }
  if (params.min_tokens_to_keep < 1 || params.min_tokens_to_keep > vocab_size) {
    return out_of_range(
        "min_tokens_to_keep",
        "between 1 and the vocabulary's size, " + std::to_string(vocab_size)
    );
  }
  if (params.top_k >= vocab_size) {
    return out_of_range(
        "top_k", "below the vocabulary's size, " + std::to_string(vocab_size)
    );
  }
  if (!within(params.xtc_probability, 0, 1)) {
    return out_of_range("xtc_probability", "between 0 and 1");
  }
  if (!within(params.xtc_threshold, 0, 0.5)) {
    return out_of_range("xtc_threshold", "between 0 and 0.5");
  }
  if (!(params.repetition_penalty >= 0) ||
      !std::isfinite(params.repetition_penalty)) {
    return out_of_range("repetition_penalty", "a finite number of at least 0");
  }
  if (!std::isfinite(params.presence_penalty)) {
    return out_of_range("presence_penalty", "a finite number");
  }
  if (!std::isfinite(params.frequency_penalty)) {
    return out_of_range("frequency_penalty", "a finite number");
  }
  for (auto [token, bias] : params.logit_bias) {
    if (token < 0 || static_cast<std::size_t>(token) >= vocab_size) {
      return out_of_range(
          "logit_bias",
          "of tokens below " + std::to_string(vocab_size) + ", not " +
              std::to_string(token)
      );
    }
    if (!std::isfinite(bias)) {
      return out_of_range("logit_bias", "of finite values");
    }
  }
  return std::nullopt;
}

Status validate(const SamplingParams& params, std::size_t vocab_size) {
  if (auto fault = find_fault(params, vocab_size)) {
    return Error{Code::kInvalidArgument, std::move(fault->message)};
  }
  return {};
}

const char* to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

}  // namespace afterglow
