#include <memory>
#include <vector>

#include "kernels/bench/suite.h"
#include "kernels/testing/random.h"

namespace afterglow::bench {
namespace {

// The inner width of SmolLM2's MLP.
constexpr std::size_t kSize = 1536;

struct Arrays {
  std::vector<float> x, y, out;
  std::vector<std::uint16_t> half;

  Arrays() : out(kSize), half(kSize) {
    test::Random random(3);
    x = random.floats(kSize);
    y = random.floats(kSize);
  }
};

template <class Call>
void add_one(
    Suite& suite,
    const Kernels& kernels,
    const char* name,
    double bytes_an_element,
    const Call& call
) {
  suite.add(kernels, name, {.bytes = bytes_an_element * kSize}, [=, &kernels] {
    auto arrays = std::make_shared<Arrays>();
    return [=, &kernels] { call(kernels, *arrays); };
  });
}

}  // namespace

void add_elementwise(Suite& suite) {
  for_each_target([&](const Kernels& k) {
    add_one(suite, k, "exp", 8, [](const Kernels& k, Arrays& a) {
      k.exp(a.x.data(), kSize, a.out.data());
    });
    add_one(suite, k, "tanh", 8, [](const Kernels& k, Arrays& a) {
      k.tanh(a.x.data(), kSize, a.out.data());
    });
    add_one(suite, k, "add", 12, [](const Kernels& k, Arrays& a) {
      k.add(a.out.data(), a.y.data(), kSize);
    });
    add_one(suite, k, "softcap", 8, [](const Kernels& k, Arrays& a) {
      k.softcap(a.x.data(), kSize, 30);
    });
    add_one(suite, k, "gate_silu", 12, [](const Kernels& k, Arrays& a) {
      k.gate_silu(a.x.data(), a.y.data(), kSize, a.out.data());
    });
    add_one(suite, k, "gate_gelu", 12, [](const Kernels& k, Arrays& a) {
      k.gate_gelu(a.x.data(), a.y.data(), kSize, a.out.data());
    });
    add_one(suite, k, "to_half", 6, [](const Kernels& k, Arrays& a) {
      k.to_half(a.x.data(), kSize, a.half.data());
    });
  });
}

}  // namespace afterglow::bench
