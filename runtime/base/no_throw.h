// noThrow: converts exceptions to Status at each public entry point of the runtime.
#pragma once

#include "runtime/base/status.h"

#include <exception>
#include <new>

namespace cgc {

/// Returns the result of `body`, a Status or a Result. An exception becomes OutOfMemory if host
/// memory ran out, else Failed. The runtime itself throws nothing; the standard library may.
template <class Body> auto noThrow(const Body &body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return Status(Code::OutOfMemory, "no host memory"); // Short enough to need no allocation.
  } catch (const std::exception &error) {
    return Status(Code::Failed, error.what());
  }
}

} // namespace cgc
