#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <vector>

#include "afterglow/sampling.h"
#include "api/raise.h"
#include "arrays.h"
#include "bindings.h"
#include "engine/request.h"
#include "engine/sampler.h"

namespace nb = nanobind;

namespace afterglow::python {
namespace {

Token sample(
    const SamplingParams& params,
    const LentFloats& logits,
    std::uint64_t position
) {
  require(validate(params, logits.size()));
  return without_gil([&] {
    return Sampler(params).sample({logits.data(), logits.size()}, position);
  });
}

void process(
    const SamplingParams& params,
    const LentFloats& logits,
    const std::vector<Token>& tokens
) {
  require(validate(params, logits.size()));
  without_gil([&] {
    Sampler(params).process({logits.data(), logits.size()}, tokens);
  });
}

}  // namespace

void bind_sampling(nb::module_& module) {
  using P = SamplingParams;
  nb::class_<P>(module, "SamplingParams")
      .def(nb::init<>())
      .def_rw("temperature", &P::temperature)
      .def_rw("top_p", &P::top_p)
      .def_rw("top_k", &P::top_k)
      .def_rw("min_p", &P::min_p)
      .def_rw("min_tokens_to_keep", &P::min_tokens_to_keep)
      .def_rw("xtc_probability", &P::xtc_probability)
      .def_rw("xtc_threshold", &P::xtc_threshold)
      .def_rw("xtc_special_tokens", &P::xtc_special_tokens)
      .def_rw("repetition_penalty", &P::repetition_penalty)
      .def_rw("repetition_context_size", &P::repetition_context_size)
      .def_rw("presence_penalty", &P::presence_penalty)
      .def_rw("presence_context_size", &P::presence_context_size)
      .def_rw("frequency_penalty", &P::frequency_penalty)
      .def_rw("frequency_context_size", &P::frequency_context_size)
      .def_rw("logit_bias", &P::logit_bias)
      .def_rw("seed", &P::seed, nb::arg().none());
  module.def(
      "sample",
      &sample,
      nb::arg("params"),
      nb::arg("logits"),
      nb::arg("position"),
      "The token that is drawn for that position."
  );
  module.def(
      "process",
      &process,
      nb::arg("params"),
      nb::arg("logits"),
      nb::arg("tokens"),
      "Changes logits in place by penalties and biases."
  );
}

}  // namespace afterglow::python
