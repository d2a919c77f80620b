// Errors of the C API as Python exceptions.
#include "raise.h"

#include <nanobind/stl/string.h>

namespace nb = nanobind;

void cgc_python::raise(cgc_code code, const std::string &message) {
  const nb::object error = nb::module_::import_("cgc._errors").attr("error_of")(int(code), message);
  PyErr_SetObject(error.type().ptr(), error.ptr());
  throw nb::python_error();
}

void cgc_python::check(cgc_code code, cgc_error *error) {
  if (code == CGC_OK)
    return;
  const std::string message = error ? cgc_error_message(error) : cgc_code_name(code);
  cgc_error_destroy(error);
  raise(code, message);
}
