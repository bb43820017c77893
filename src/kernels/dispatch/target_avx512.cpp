#define AFTERGLOW_TARGET avx512
#define AFTERGLOW_TARGET_NAME "avx512"
#include "kernels/simd/avx512_vnni.h"
//
#include "kernels/dispatch/all_kernels.h"
