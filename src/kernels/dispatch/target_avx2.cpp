#define AFTERGLOW_TARGET avx2
#define AFTERGLOW_TARGET_NAME "avx2"
#include "kernels/simd/avx2.h"
//
#include "kernels/dispatch/all_kernels.h"
