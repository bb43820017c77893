#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "afterglow/model.h"
#include "callable.h"

namespace afterglow::python {

using TextOrTokens = std::variant<std::string, std::vector<Token>>;

inline Prompt to_prompt(const TextOrTokens& prompt, std::size_t system_tokens) {
  if (const auto* text = std::get_if<std::string>(&prompt)) {
    return Prompt(*text);
  }
  return Prompt(std::get<std::vector<Token>>(prompt), system_tokens);
}

/// Empty for None.
inline std::function<void(std::size_t, std::size_t)> to_progress(
    nanobind::object callback
) {
  if (callback.is_none()) return {};
  return [call = Callable(std::move(callback)
          )](std::size_t done, std::size_t total) {
    const GilHeld held;
    call(done, total);
  };
}

}  // namespace afterglow::python
