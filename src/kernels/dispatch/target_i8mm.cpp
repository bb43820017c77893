#define AFTERGLOW_TARGET i8mm
#define AFTERGLOW_TARGET_NAME "i8mm"
#include "kernels/simd/neon_dot.h"
//
#include "kernels/dispatch/all_kernels.h"
