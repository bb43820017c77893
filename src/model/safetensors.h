#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/tensor.h"

namespace afterglow {

/// The content of a safetensors file; tensors point into its bytes, in the
/// order of their data.
struct Safetensors {
  std::vector<RawTensor> tensors;
  std::map<std::string, std::string> metadata;
};

/// Reads the header and checks all of it: lengths against the file, JSON
/// without duplicate keys, known dtypes, shapes that match their bytes, data
/// that covers the rest of the file without a gap or an overlap.
/// `name` is the file's name in messages.
/// Errors: kCorrupt naming the field; kUnsupported for an unknown dtype.
/// Source: https://huggingface.co/docs/safetensors (format)
Result<Safetensors> parse_safetensors(
    std::span<const std::byte> file, const std::string& name
);

}  // namespace afterglow
