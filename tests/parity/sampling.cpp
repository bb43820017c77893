// Plays sampling on given logits for test_sampling.py, which compares it with
// mlx_lm.sample_utils.
//
//   stdin:  cases, each a line of JSON and then its logits, raw floats
//           {"vocab": N, "history": [..], "params": {..}, "top": N}
//   stdout: for each case a line of JSON and then, unless it has an "error",
//           raw: the processed logits (float), the tokens that may be drawn
//           (int32) and their depths (float)
//           {"candidates": N, "log_sum": X, "top": [[token, logprob], ..],
//            "greedy": token}, or {"error": text, "code": text}

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "engine/narrowing.h"
#include "engine/sampler.h"

namespace {

using namespace afterglow;
using nlohmann::json;

template <class T>
void read(const json& params, const char* name, T& to) {
  if (params.contains(name)) {
    params.at(name).get_to(to);
  }
}

SamplingParams read_params(const json& from) {
  SamplingParams to;
  read(from, "temperature", to.temperature);
  read(from, "top_p", to.top_p);
  read(from, "top_k", to.top_k);
  read(from, "min_p", to.min_p);
  read(from, "min_tokens_to_keep", to.min_tokens_to_keep);
  read(from, "xtc_probability", to.xtc_probability);
  read(from, "xtc_threshold", to.xtc_threshold);
  read(from, "xtc_special_tokens", to.xtc_special_tokens);
  read(from, "repetition_penalty", to.repetition_penalty);
  read(from, "repetition_context_size", to.repetition_context_size);
  read(from, "presence_penalty", to.presence_penalty);
  read(from, "presence_context_size", to.presence_context_size);
  read(from, "frequency_penalty", to.frequency_penalty);
  read(from, "frequency_context_size", to.frequency_context_size);
  read(from, "logit_bias", to.logit_bias);
  return to;
}

template <class T>
void write(std::span<const T> values) {
  CHECK(
      std::fwrite(values.data(), sizeof(T), values.size(), stdout) ==
      values.size()
  );
}

void play(const json& one) {
  std::vector<float> logits(one.at("vocab").get<std::size_t>());
  std::cin.read(
      reinterpret_cast<char*>(logits.data()),
      static_cast<std::streamsize>(logits.size() * sizeof(float))
  );
  CHECK(!std::cin.fail(), "sampling: a case lacks logits");
  auto params = read_params(one.at("params"));
  if (Status valid = validate(params, logits.size()); !valid.ok()) {
    json out{
        {"error", valid.error().message},
        {"code", to_string(valid.error().code)}};
    std::puts(out.dump().c_str());
    return;
  }
  auto history = one.at("history").get<std::vector<Token>>();
  Sampler(params).process(logits, history);
  Narrowing narrowing(params);
  std::vector<Token> tokens;
  std::vector<float> depths;
  for (auto [token, depth] : narrowing.narrow(logits, true)) {
    tokens.push_back(token);
    depths.push_back(depth);
  }
  double log_sum = log_sum_exp(logits);
  json top = json::array();
  for (auto [token, logprob] :
       top_logprobs(logits, log_sum, one.at("top").get<std::size_t>())) {
    top.push_back({token, logprob});
  }
  params.temperature = 0;
  json out{
      {"candidates", tokens.size()},
      {"log_sum", log_sum},
      {"top", top},
      {"greedy", Sampler(params).sample(logits, 0)}};
  std::puts(out.dump().c_str());
  write<float>(logits);
  write<Token>(tokens);
  write<float>(depths);
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) {
    play(json::parse(line));
  }
}
