#include "ops/mlx/mlx_ops.h"

namespace afterglow {

Result<std::unique_ptr<Ops>> make_mlx_ops(ThreadPool&, MlxDevice) {
  return Error{
      Code::kUnsupported,
      "[mlx.open] this build has no MLX backend; configure with "
      "-DAFTERGLOW_MLX=ON, or compute on the CPU"};
}

}  // namespace afterglow
