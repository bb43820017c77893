#include <nanobind/nanobind.h>

#include "bindings.h"
#include "gil.h"

namespace nb = nanobind;

namespace afterglow::python {
namespace {

void end_interpreter(bool other_threads) {
  // What other threads hold is never freed.
  if (other_threads) nb::set_leak_warnings(false);
  begin_exit();
  close_models();
}

void begin_child() {
  after_fork();
  forget_models();
}

}  // namespace
}  // namespace afterglow::python

NB_MODULE(_native, module) {
  using namespace afterglow::python;  // NOLINT
  module.doc() = "What afterglow takes from the C++ library.";
  bind_errors(module);
  bind_cache(module);
  bind_model(module);
  bind_sampling(module);
  bind_text_stream(module);
  bind_logits_stream(module);
  module.def(
      "end_interpreter",
      &end_interpreter,
      nb::arg("other_threads"),
      "Called once, as the interpreter begins to exit."
  );
  module.def(
      "after_fork", &begin_child, "Called in a forked process, before all else."
  );
}
