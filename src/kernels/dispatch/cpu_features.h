#pragma once

#include <span>

namespace afterglow {

/// An instruction-set extension that some target asks for.
struct CpuFeature {
  const char* name;
  bool here;  // the processor has it and the system saves its registers
};

/// All of them for this kind of processor. Thread: any.
std::span<const CpuFeature> cpu_features();

}  // namespace afterglow
