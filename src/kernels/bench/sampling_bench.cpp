#include <memory>
#include <vector>

#include "kernels/bench/suite.h"
#include "kernels/testing/random.h"

namespace afterglow::bench {

void add_sampling(Suite& suite) {
  constexpr std::size_t kVocabulary = 128256;
  constexpr Work kWork{.bytes = 4 * kVocabulary};
  const auto logits = [] {
    return std::make_shared<std::vector<float>>(
        test::Random(4).floats(kVocabulary, 20)
    );
  };
  for_each_target([&](const Kernels& k) {
    suite.add(k, "argmax", kWork, [=, &k] {
      return [x = logits(), &k] {
        volatile std::size_t best = k.argmax(x->data(), x->size());
        (void)best;
      };
    });
    suite.add(k, "exp_sum", kWork, [=, &k] {
      return [x = logits(), &k] {
        volatile float sum = k.exp_sum(x->data(), x->size(), 20);
        (void)sum;
      };
    });
  });
}

}  // namespace afterglow::bench
