#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "afterglow/afterglow.h"

namespace afterglow {

inline std::string tiny_model() {
  return std::string(AFTERGLOW_SOURCE_DIR) + "/tests/parity/golden/tiny.gguf";
}

/// Keeps the tiny model from ending its answers.
inline std::vector<std::pair<Token, float>> endless() {
  return {{2, -1000.0F}, {7, -1000.0F}};
}

/// Without a prompt cache, so that only histories are continued.
inline LoadOptions plain_options() {
  LoadOptions options;
  options.threads = 2;
  options.prompt_cache_bytes = 0;
  return options;
}

inline Model load_tiny(const LoadOptions& options = plain_options()) {
  return load(tiny_model(), options);
}

/// Tokens of the tiny model's vocabulary, none of which ends an answer.
inline std::vector<Token> some_tokens(std::size_t count, Token first = 7) {
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<Token>(10 + (first * 31 + i * i * 17) % 80));
  }
  return tokens;
}

inline std::vector<Token> joined(
    std::vector<Token> tokens, const std::vector<Token>& more
) {
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

struct Answer {
  std::vector<Token> tokens;
  StepOutput last;
};

inline Answer collect(TextStream stream) {
  Answer answer;
  for (StepOutput& output : stream) {
    if (output.token != kUnknownToken) answer.tokens.push_back(output.token);
    answer.last = std::move(output);
  }
  return answer;
}

/// An answer that no end token ends.
inline Answer answer_to(
    const Model& model,
    const std::vector<Token>& prompt,
    GenerateOptions options = {}
) {
  if (options.max_tokens == GenerateOptions().max_tokens) {
    options.max_tokens = 12;
  }
  options.sampling.logit_bias = endless();
  options.return_cache = true;
  return collect(stream_generate(model, prompt, options));
}

/// The code and text of what a call throws.
template <class Call>
std::pair<Code, std::string> refusal(Call call) {
  try {
    call();
  } catch (const Exception& error) {
    return {error.code(), error.what()};
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

/// A folder that goes when the test ends.
class Folder {
 public:
  Folder()
      : path_(
            std::filesystem::path(testing::TempDir()) /
            ("afterglow-api-" + std::to_string(::getpid()) + "-" +
             testing::UnitTest::GetInstance()->current_test_info()->name())
        ) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace afterglow
