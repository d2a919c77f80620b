// Status: names of the codes, and messages with context.
#include "runtime/base/status.h"

namespace cgc {

std::string_view codeName(Code code) {
  switch (code) {
  case Code::Ok:
    return "ok";
  case Code::Failed:
    return "failed";
  case Code::Usage:
    return "usage";
  case Code::InvalidFile:
    return "invalid_file";
  case Code::Unsupported:
    return "unsupported";
  case Code::Mismatch:
    return "mismatch";
  case Code::Device:
    return "device";
  case Code::OutOfMemory:
    return "out_of_memory";
  case Code::Busy:
    return "busy";
  }
  return "unknown";
}

Status Status::withContext(std::string_view context) const {
  if (isOk())
    return *this;
  return Status(code_, std::string(context) + ": " + message_);
}

} // namespace cgc
