#pragma once

#include <memory>

#include "base/thread_pool.h"
#include "kernels/dispatch/kernel_table.h"
#include "ops/numerics.h"
#include "ops/ops.h"

namespace afterglow {

/// The CPU backend: computes at once, on the caller and the pool's threads,
/// with the kernels that select_kernels() gives. The logits and the KV of a
/// position have the same bits whatever the chunks, the batch mates, the
/// number of threads and the instruction set.
///
/// KV is f16, or f32 in the f32 mode. Needs heads of a multiple of 16
/// dimensions, at most 512.
/// Requires: pool outlives the result and runs nothing else during a step.
/// Errors: those of select_kernels(), for a wrong AFTERGLOW_TARGET.
Result<std::unique_ptr<Ops>> make_cpu_ops(ThreadPool& pool, Activations mode);

/// The same with kernels of the caller's choice.
std::unique_ptr<Ops> make_cpu_ops(
    ThreadPool& pool, Activations mode, const Kernels& kernels
);

}  // namespace afterglow
