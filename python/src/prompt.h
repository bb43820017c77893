#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "afterglow/model.h"
#include "collected.h"

namespace afterglow::python {

using TextOrTokens = std::variant<std::string, std::vector<Token>>;

inline Prompt to_prompt(const TextOrTokens& prompt, std::size_t system_tokens) {
  if (const auto* text = std::get_if<std::string>(&prompt)) {
    return Prompt(*text);
  }
  return Prompt(std::get<std::vector<Token>>(prompt), system_tokens);
}

/// Empty for None. The callback is added to callables.
inline std::function<void(std::size_t, std::size_t)> to_progress(
    nanobind::object callback, Callables& callables
) {
  if (callback.is_none()) return {};
  return [call = keep(callables, std::move(callback))](
             std::size_t done, std::size_t total
         ) {
    const GilHeld held;
    call(done, total);
  };
}

}  // namespace afterglow::python
