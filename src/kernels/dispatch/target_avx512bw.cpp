#define AFTERGLOW_TARGET avx512bw
#define AFTERGLOW_TARGET_NAME "avx512bw"
#include "kernels/simd/avx512_madd.h"
//
#include "kernels/dispatch/all_kernels.h"
