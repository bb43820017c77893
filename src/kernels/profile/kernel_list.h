#pragma once

#include <cstddef>
#include <tuple>
#include <utility>

#include "kernels/dispatch/kernel_table.h"

namespace afterglow {

/// A kernel's name and its place in the table.
template <class Function>
struct KernelEntry {
  const char* name;
  Function Kernels::*function;
};

/// All kernels of a table, for what is done to each of them.
inline constexpr std::tuple kKernelList{
    KernelEntry{"exp", &Kernels::exp},
    KernelEntry{"tanh", &Kernels::tanh},
    KernelEntry{"add", &Kernels::add},
    KernelEntry{"softcap", &Kernels::softcap},
    KernelEntry{"gate_silu", &Kernels::gate_silu},
    KernelEntry{"gate_gelu", &Kernels::gate_gelu},
    KernelEntry{"to_half", &Kernels::to_half},
    KernelEntry{"rms_norm", &Kernels::rms_norm},
    KernelEntry{"rope", &Kernels::rope},
    KernelEntry{"quantize", &Kernels::quantize},
    KernelEntry{"linear_int", &Kernels::linear_int},
    KernelEntry{"linear_f32", &Kernels::linear_f32},
    KernelEntry{"attend_page", &Kernels::attend_page},
    KernelEntry{"attend_add", &Kernels::attend_add},
    KernelEntry{"attend_finish", &Kernels::attend_finish},
    KernelEntry{"argmax", &Kernels::argmax},
    KernelEntry{"exp_sum", &Kernels::exp_sum},
};

inline constexpr std::size_t kKernelCount =
    std::tuple_size_v<decltype(kKernelList)>;

static_assert(
    sizeof(Kernels) ==
        offsetof(Kernels, exp) + kKernelCount * sizeof(Kernels::exp),
    "a kernel is missing in the list"
);

}  // namespace afterglow
