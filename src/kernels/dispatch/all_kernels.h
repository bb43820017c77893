// Included once in each target's translation unit, behind its lanes: all
// kernels for that target, and the table of them. A function that targets
// share must not be inline with external linkage, since the linker would keep
// one target's copy for all; so nothing of that kind is called here.
#include "kernels/dispatch/kernel_table.h"
//
#include "kernels/math/exp_body.h"
//
#include "kernels/elementwise/elementwise_body.h"
//
#include "kernels/norm/rms_norm_body.h"
#include "kernels/rope/rope_body.h"
#include "kernels/sampling/sampling_body.h"
//
#include "kernels/linear/linear_int_body.h"
#include "kernels/linear/panel_body.h"
#include "kernels/linear/quantize_body.h"
//
#include "kernels/attention/attention_body.h"
#include "kernels/linear/linear_f32_body.h"

namespace afterglow::AFTERGLOW_TARGET {

extern const Kernels kTable;
const Kernels kTable{
    .name = AFTERGLOW_TARGET_NAME,
    .token_tile = Rows::kTile,
    .query_rows = kPanelRows,
    .code_form = code_form,
    .exp = exp_array,
    .tanh = tanh_array,
    .add = add_array,
    .softcap = softcap_array,
    .gate_silu = gate_array<silu>,
    .gate_gelu = gate_array<gelu_tanh>,
    .to_half = to_half_array,
    .rms_norm = rms_norm_row,
    .rope = rope_row,
    .quantize = quantize_row,
    .linear_int = linear_int,
    .linear_f32 = linear_f32,
    .attend_page = attend_page,
    .attend_add = attend_add,
    .attend_finish = attend_finish,
    .argmax = argmax_array,
    .exp_sum = exp_sum_array,
};

}  // namespace afterglow::AFTERGLOW_TARGET
