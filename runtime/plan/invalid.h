// invalidFile(): how the parts of validate() refuse a plan.
#pragma once

#include "runtime/base/status.h"

#include <string>
#include <utility>

namespace cgc {

inline Status invalidFile(std::string what) {
  return {Code::InvalidFile, std::move(what)};
}

} // namespace cgc
