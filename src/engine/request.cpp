#include "engine/request.h"

#include <cmath>
#include <string>

namespace afterglow {
namespace {

Status out_of_range(const char* field, const std::string& range) {
  return Error{
      Code::kInvalidArgument, std::string(field) + " must be " + range};
}

// False for NaN too.
bool within(double value, double low, double high) {
  return value >= low && value <= high;
}

}  // namespace

Status SamplingParams::validate(std::size_t vocab_size) const {
  if (!(temperature >= 0) || !std::isfinite(temperature)) {
    return out_of_range("temperature", "a finite number of at least 0");
  }
  if (!within(top_p, 0, 1)) {
    return out_of_range("top_p", "between 0 and 1");
  }
  if (!within(min_p, 0, 1)) {
    return out_of_range("min_p", "between 0 and 1");
  }
  if (min_tokens_to_keep < 1) {
    return out_of_range("min_tokens_to_keep", "at least 1");
  }
  if (top_k >= vocab_size) {
    return out_of_range(
        "top_k", "below the vocabulary's size, " + std::to_string(vocab_size)
    );
  }
  if (!within(xtc_probability, 0, 1)) {
    return out_of_range("xtc_probability", "between 0 and 1");
  }
  if (!within(xtc_threshold, 0, 0.5)) {
    return out_of_range("xtc_threshold", "between 0 and 0.5");
  }
  if (!(repetition_penalty >= 0) || !std::isfinite(repetition_penalty)) {
    return out_of_range("repetition_penalty", "a finite number of at least 0");
  }
  if (!std::isfinite(presence_penalty)) {
    return out_of_range("presence_penalty", "a finite number");
  }
  if (!std::isfinite(frequency_penalty)) {
    return out_of_range("frequency_penalty", "a finite number");
  }
  for (auto [token, bias] : logit_bias) {
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
