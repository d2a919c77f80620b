// Errors of the C API as Python exceptions.
#pragma once

#include <cgc.h>
#include <nanobind/nanobind.h>

#include <string>

namespace cgc_python {

/// Throws the exception of `code` (cgc._errors) with this message. The caller holds the GIL.
[[noreturn]] void raise(cgc_code code, const std::string &message);

/// Takes ownership of `error` and throws it, unless `code` is CGC_OK. The caller holds the GIL.
void check(cgc_code code, cgc_error *error);

/// Calls `call(cgc_error **)`, which returns a cgc_code, without the GIL, and throws its error.
template <class Call> void checkWithoutGil(const Call &call) {
  cgc_error *error = nullptr;
  cgc_code code;
  {
    const nanobind::gil_scoped_release released;
    code = call(&error);
  }
  check(code, error);
}

} // namespace cgc_python
