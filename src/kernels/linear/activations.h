#pragma once

#include <cstddef>
#include <cstdint>

namespace afterglow {

// The inputs of a linear layer, rounded per group of 32: x = scale * q with q
// an integer. |q| <= 127 (one byte) or <= 32512 = 127 * 256, so that
// q = 256 high + low with both in a signed byte. The dot product of q with 32
// codes (16 where the weight's groups are that small) is an exact 32-bit
// integer, however a target computes it.

inline constexpr std::int32_t kInt8Levels = 127;
inline constexpr std::int32_t kInt16Levels = 32512;

/// How q lies in memory; a target's choice, of no effect on results.
enum class CodeForm : std::uint8_t {
  kBytes,    // [32] bytes
  kHighLow,  // [32] bytes of 256ths, [32] bytes of the rest
  kWords,    // [32] words, each four in the order 0 2 1 3
};

static inline std::size_t code_bytes(CodeForm form) {
  return form == CodeForm::kBytes ? 32 : 64;
}

/// What goes with the inputs of one dot product: 32, or 16 where the weight's
/// groups have 16. A token has cols / 32 * block_groups of them.
struct InputGroup {
  float scale;
  /// Sum of scale * sum(q) over the weight's group up to and including these
  /// inputs: what the weight's bias is multiplied by.
  float sum;
  /// The weight's code offset times sum(q).
  std::int32_t correction;
  std::int32_t unused;
};

// Tokens lie in tiles. A tile of n tokens holds for each 32 inputs the codes
// of its n tokens one after another, and likewise their InputGroups. All tiles
// have the target's full size but the last, which are the powers of two of the
// remainder, falling. So a tile that starts at token t starts at element t
// times those of a token.

/// The size of the tile that starts where `left` tokens are left.
static inline std::size_t tile_size(std::size_t left, std::size_t full) {
  while (full > left) {
    full /= 2;
  }
  return full;
}

/// Which of a layer's arguments a call works on.
struct QuantizeRow {
  const float* x;  // [cols]
  std::size_t cols;
  std::size_t weight_group;
  std::int32_t weight_offset;
  std::int32_t levels;
  CodeForm form;
  std::int8_t* codes;      // the token's place in its tile
  std::size_t code_step;   // bytes from one 32 inputs to the next
  InputGroup* groups;      // likewise
  std::size_t group_step;  // elements from one group to the next
};

}  // namespace afterglow
