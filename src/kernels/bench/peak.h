#pragma once

#include <cstddef>
#include <string>

namespace afterglow::bench {

/// Loops that do nothing but arithmetic, for one instruction set. Each does
/// its round n times and returns the operations done (a multiply-add is two).
struct Peak {
  const char* target;
  double (*float_fma)(std::size_t rounds);
  double (*byte_dot)(std::size_t rounds);
};

/// Those of a table in all_targets(), by name; peak.cpp is compiled once for
/// each. Null: none.
const Peak* find_peak(const std::string& target);

/// Makes a peak known. Called before main() only.
bool register_peak(const Peak& peak);

}  // namespace afterglow::bench
