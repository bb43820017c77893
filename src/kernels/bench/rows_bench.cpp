#include <memory>
#include <string>
#include <vector>

#include "kernels/bench/suite.h"
#include "kernels/testing/linear.h"
#include "kernels/testing/matrix.h"

namespace afterglow::bench {
namespace {

constexpr std::size_t kHidden = 2048;
constexpr std::size_t kDim = 64;

using Floats = std::vector<float>;

void add_norm(Suite& suite, const Kernels& k) {
  suite.add(k, "rms_norm/2048", {.bytes = 12 * kHidden}, [&k] {
    auto x = std::make_shared<Floats>(test::Random(5).floats(kHidden));
    auto y = std::make_shared<Floats>(kHidden);
    return [=, &k] {
      k.rms_norm(x->data(), x->data(), 1e-5F, kHidden, y->data());
    };
  });
}

void add_rope(Suite& suite, const Kernels& k, bool interleaved) {
  const char* name = interleaved ? "rope/64/interleaved" : "rope/64/halves";
  suite.add(k, name, {.bytes = 12 * kDim}, [=, &k] {
    auto x = std::make_shared<Floats>(test::Random(6).floats(kDim));
    auto cosine = std::make_shared<Floats>(kDim / 2, 0.8F);
    auto sine = std::make_shared<Floats>(kDim / 2, 0.6F);
    return [=, &k] {
      k.rope(x->data(), cosine->data(), sine->data(), kDim / 2, interleaved);
    };
  });
}

void add_quantize(Suite& suite, const Kernels& k, std::int32_t levels) {
  const std::string name = std::string("quantize/2048/") +
                           (levels == kInt8Levels ? "int8" : "int16");
  suite.add(k, name, {.bytes = 4 * kHidden}, [=, &k] {
    test::Random random(7);
    const test::Format format{"", ElementType::kF16, 4, 32, false, true};
    auto weight = std::make_shared<test::Packed>(
        test::pack(test::random_matrix(format, 16, kHidden, random).source)
    );
    auto x = std::make_shared<Floats>(random.floats(kHidden));
    auto out = std::make_shared<test::RoundedInputs>(
        test::round_inputs(k, weight->matrix, x->data(), 1, levels)
    );
    const PackedMatrix& w = weight->matrix;
    const QuantizeRow row{
        .x = x->data(),
        .cols = kHidden,
        .weight_group = w.group,
        .weight_offset = w.offset,
        .levels = levels,
        .form = out->form,
        .codes = out->codes.data(),
        .code_step = code_bytes(out->form),
        .groups = out->groups.data(),
        .group_step = 1};
    return [=, &k] {
      (void)weight, (void)x, (void)out;  // kept alive
      k.quantize(row);
    };
  });
}

}  // namespace

void add_rows(Suite& suite) {
  for_each_target([&](const Kernels& k) {
    add_norm(suite, k);
    add_rope(suite, k, false);
    add_rope(suite, k, true);
    add_quantize(suite, k, kInt8Levels);
    add_quantize(suite, k, kInt16Levels);
  });
}

}  // namespace afterglow::bench
