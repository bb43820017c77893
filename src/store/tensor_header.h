#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace afterglow {

/// One tensor as a safetensors header describes it.
struct TensorEntry {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0;  // bytes from the end of the header
  std::uint64_t end = 0;

  bool operator==(const TensorEntry&) const = default;
};

/// A safetensors header: `__metadata__`, then tensors, in the file's order.
struct TensorHeader {
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<TensorEntry> tensors;
};

/// The header's JSON in the one form block files use: no spaces, metadata
/// first, and in each tensor dtype, shape, data_offsets.
/// Requires: no text needs a JSON escape.
/// Source: https://github.com/huggingface/safetensors#format
std::string format_tensor_header(const TensorHeader& header);

/// Reads that form, perhaps followed by spaces, and nothing else: another
/// order, an escape, a second key of one name, or a number with a leading
/// zero is refused.
/// Errors: kCorrupt, with the byte where it went wrong.
Result<TensorHeader> parse_tensor_header(std::string_view text);

}  // namespace afterglow
