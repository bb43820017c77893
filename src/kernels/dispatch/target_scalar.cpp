#define AFTERGLOW_TARGET scalar
#define AFTERGLOW_TARGET_NAME "scalar"
#include "kernels/simd/scalar.h"
//
#include "kernels/dispatch/all_kernels.h"
