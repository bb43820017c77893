#define AFTERGLOW_TARGET dotprod
#define AFTERGLOW_TARGET_NAME "dotprod"
#include "kernels/simd/neon_dot.h"
//
#include "kernels/dispatch/all_kernels.h"
