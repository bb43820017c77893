#pragma once

#include <array>
#include <cstdint>

namespace afterglow {

/// Philox 4x32 with 10 rounds: a block of random bits as a function of a key
/// and a counter, so that a draw depends on nothing drawn before.
/// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as
/// 1, 2, 3", SC 2011.
std::array<std::uint32_t, 4> philox(
    std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key
);

/// A number in [0, 1) with 53 random bits, the `draw`-th of those that belong
/// to a position in a sequence.
double uniform_at(
    std::uint64_t seed, std::uint64_t position, std::uint32_t draw
);

}  // namespace afterglow
