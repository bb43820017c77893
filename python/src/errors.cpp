#include "afterglow/error.h"

#include <nanobind/nanobind.h>

#include "bindings.h"

namespace nb = nanobind;

namespace afterglow::python {
namespace {

PyObject* builtin_type(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return PyExc_ValueError;
    case Code::kNotFound:
      return PyExc_FileNotFoundError;
    case Code::kPermission:
      return PyExc_PermissionError;
    case Code::kIo:
    case Code::kNoSpace:
      return PyExc_OSError;
    case Code::kExhausted:
      return PyExc_MemoryError;
    default:
      return nullptr;
  }
}

void raise_in_python(const Exception& error) {
  if (PyObject* type = builtin_type(error.code())) {
    PyErr_SetString(type, error.what());
    return;
  }
  try {
    nb::object type = nb::module_::import_("afterglow._error").attr("Error");
    nb::object value = type(error.what(), to_string(error.code()));
    PyErr_SetObject(type.ptr(), value.ptr());
  } catch (nb::python_error& other) {
    other.restore();
  }
}

}  // namespace

void bind_errors(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& thrown,
                                       void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Exception& error) {
      raise_in_python(error);
    }
  });
}

}  // namespace afterglow::python
