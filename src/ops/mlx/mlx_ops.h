#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "base/thread_pool.h"
#include "ops/ops.h"

namespace afterglow {

/// Where MLX computes.
enum class MlxDevice : std::uint8_t {
  kDefault,  // what MLX prefers: a GPU where there is one
  kCpu,      // slow, in f32 throughout: the oracle of the CPU backend
};

/// The backend that builds MLX graphs. Calls only record; logits() computes
/// the step and its numbers are there when it returns, end() computes what is
/// left. On the CPU device weights' scales, activations and KV are f32; on a
/// GPU they have the type of the weight file. The pool decodes weights while
/// they are added and must outlive the Ops.
/// Errors: kUnsupported in a build without MLX, and where the loaded MLX
/// library is not the version this was built with. Where a call of a step
/// fails, all later ones of it do nothing, logits are NaN, and end() returns
/// kInternal (kExhausted when memory ran out) with MLX's message.
/// Thread: the calling thread becomes the one that may use the Ops, since
/// MLX's streams belong to threads.
Result<std::unique_ptr<Ops>> make_mlx_ops(
    ThreadPool& pool, MlxDevice device = MlxDevice::kDefault
);

}  // namespace afterglow
