#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>

namespace afterglow {

/// A check of a flag that takes whole numbers of a range; its message tells
/// the range. CLI11 alone would take -1 for the largest number there is.
CLI::Validator whole_number(
    std::uint64_t least,
    std::uint64_t most = std::numeric_limits<std::uint64_t>::max()
);

/// The same for finite numbers. CLI11's own ranges let NaN pass.
CLI::Validator real_number(
    double least, double most = std::numeric_limits<double>::max()
);

/// For a flag that protects or keeps, which an empty value, such as that of a
/// shell's variable that is not set, would silently switch off.
CLI::Validator not_empty();

}  // namespace afterglow
