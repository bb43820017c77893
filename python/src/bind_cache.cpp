#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "bindings.h"

namespace nb = nanobind;

namespace afterglow::python {
namespace {

/// Calls a const member, which may ask the engine, without the GIL.
template <class T>
auto ask(T (CacheHistory::*member)() const) {
  return [member](const HistoryHandle& self) {
    const CacheHistory& history = *self.history;
    return without_gil([&] { return (history.*member)(); });
  };
}

std::string describe(const HistoryHandle& self) {
  const CacheHistory& history = *self.history;
  return without_gil([&] {
    return "CacheHistory(" + std::to_string(history.size()) + " tokens, " +
           std::to_string(history.bytes()) + " bytes)";
  });
}

HistoryHandle copy(const HistoryHandle& self) {
  return {Owned<CacheHistory>(*self.history)};
}

std::pair<HistoryHandle, Metadata> load(const std::string& filename) {
  auto [history, metadata] = without_gil([&] { return load_cache(filename); });
  return {
      HistoryHandle{Owned<CacheHistory>(std::move(history))},
      std::move(metadata)};
}

}  // namespace

void bind_cache(nb::module_& module) {
  nb::class_<HistoryHandle>(
      module,
      "CacheHistory",
      nb::is_final(),
      "Tokens and their KV: what a generation has read and written. A value: "
      "continuing it twice\ngives two independent continuations that share "
      "its memory."
  )
      .def("__len__", ask(&CacheHistory::size), "How many tokens it holds.")
      .def_prop_ro(
          "tokens",
          ask(&CacheHistory::tokens),
          "Which ones; -1 where a file of mlx_lm did not say it."
      )
      .def_prop_ro(
          "nbytes",
          ask(&CacheHistory::bytes),
          "Bytes of the KV in memory, those shared with others included."
      )
      .def("__copy__", &copy)
      .def(
          "__deepcopy__",
          [](const HistoryHandle& self, nb::object) { return copy(self); },
          nb::sig("def __deepcopy__(self, memo: object, /) -> CacheHistory")
      )
      .def(
          "__reduce_ex__",
          [](const HistoryHandle&, nb::object) -> nb::object {
            throw nb::type_error(
                "a CacheHistory cannot be pickled; write it to a file by "
                "afterglow.save_cache"
            );
          },
          nb::sig("def __reduce_ex__(self, protocol: object, /) -> str | "
                  "tuple[object, ...]")
      )
      .def("__repr__", &describe);

  module.def(
      "save_cache",
      [](const std::string& filename,
         const HistoryHandle& history,
         const Metadata& metadata) {
        const CacheHistory& one = *history.history;
        without_gil([&] { save_cache(filename, one, metadata); });
      },
      nb::arg("filename"),
      nb::arg("history"),
      nb::arg("metadata")
  );
  module.def("load_cache", &load, nb::arg("filename"));
}

}  // namespace afterglow::python
