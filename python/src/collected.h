#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <vector>

#include "callable.h"

namespace afterglow::python {

/// The callables that a handle's value calls.
using Callables = std::vector<Callable>;

/// Adds a function to callables. Requires: the GIL.
inline Callable keep(Callables& callables, nanobind::object function) {
  return callables.emplace_back(std::move(function));
}

/// Type slots of a handle that may be part of a cycle, by a callable that leads
/// back to it. Requires: Handle::callables, and Handle::reset(), which drops
/// these and what calls them.
template <class Handle>
std::array<PyType_Slot, 3> collected() {
  constexpr traverseproc kTraverse = [](PyObject* self,
                                        visitproc visit,
                                        void* arg) {
    Py_VISIT(Py_TYPE(self));
    // The collector may come before the value is there.
    if (!nanobind::inst_ready(self)) return 0;
    for (const Callable& one : nanobind::inst_ptr<Handle>(self)->callables) {
      if (int stop = one.traverse(visit, arg); stop != 0) return stop;
    }
    return 0;
  };
  constexpr inquiry kClear = [](PyObject* self) {
    if (nanobind::inst_ready(self)) nanobind::inst_ptr<Handle>(self)->reset();
    return 0;
  };
  return {{
      {Py_tp_traverse, reinterpret_cast<void*>(+kTraverse)},
      {Py_tp_clear, reinterpret_cast<void*>(+kClear)},
      {0, nullptr},
  }};
}

}  // namespace afterglow::python
