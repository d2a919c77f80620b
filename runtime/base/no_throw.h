// noThrow: the end of the road for exceptions, at each public entry of the runtime.
#pragma once

#include "runtime/base/status.h"

#include <exception>
#include <new>

namespace cgc {

/// What `body` returns, a Status or a Result; what it throws becomes one: OutOfMemory if host
/// memory ran out, else Failed. The runtime itself throws nothing; the standard library does.
template <class Body> auto noThrow(const Body &body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return Status(Code::OutOfMemory, "no host memory"); // Short: its string allocates nothing.
  } catch (const std::exception &error) {
    return Status(Code::Failed, error.what());
  }
}

} // namespace cgc
