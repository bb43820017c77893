#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "gil.h"

namespace afterglow::python {

/// A Python callable that may be copied and dropped without the GIL. Copies
/// share one reference to it.
class Callable {
 public:
  explicit Callable(nanobind::object function)
      : function_(
            new nanobind::object(std::move(function)),
            [](nanobind::object* one) {
              const GilHeld held;
              delete one;
            }
        ) {}

  /// Requires: the GIL. Throws: what it raises.
  template <class... Arguments>
  nanobind::object operator()(Arguments&&... arguments) const {
    return (*function_)(std::forward<Arguments>(arguments)...);
  }

  /// Tells the garbage collector of the reference. For one copy only.
  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(function_->ptr());
    return 0;
  }

 private:
  std::shared_ptr<nanobind::object> function_;
};

}  // namespace afterglow::python
