#pragma once

#include <future>
#include <string>
#include <vector>

#include "base/hash.h"
#include "model/config.h"
#include "model/tensor.h"

namespace afterglow {

/// Starts hashing on threads of its own and returns the fingerprint once they
/// are done: SHA-256 over `config` and, for each tensor in the order given,
/// its name, dtype, shape and the XXH3-128 of its bytes.
/// Requires: the tensors' bytes outlive the future.
std::future<Sha256Digest> start_fingerprint(
    std::vector<RawTensor> tensors, std::string config
);

/// SHA-256 over kNumerics, the backend, the layout and the resolved rope.
Sha256Digest kv_spec_digest(
    const std::string& backend, const KvLayout& layout, const Rope& rope
);

}  // namespace afterglow
