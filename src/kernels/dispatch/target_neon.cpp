#define AFTERGLOW_TARGET neon
#define AFTERGLOW_TARGET_NAME "neon"
#include "kernels/simd/neon_mlal.h"
//
#include "kernels/dispatch/all_kernels.h"
