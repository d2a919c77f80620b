// Errors of the backend.
#include "triton/error.h"

namespace cgc_triton {

namespace {

TRITONSERVER_Error_Code codeOf(cgc_code code) {
  switch (code) {
  case CGC_USAGE:
  case CGC_INVALID_FILE:
    return TRITONSERVER_ERROR_INVALID_ARG;
  case CGC_UNSUPPORTED:
    return TRITONSERVER_ERROR_UNSUPPORTED;
  case CGC_DEVICE:
  case CGC_OUT_OF_MEMORY:
  case CGC_BUSY:
    return TRITONSERVER_ERROR_UNAVAILABLE;
  default:
    return TRITONSERVER_ERROR_INTERNAL;
  }
}

} // namespace

Error::Error(cgc_error *error) : Error(codeOf(cgc_error_code(error)), cgc_error_message(error)) {
  cgc_error_destroy(error);
}

Error::Error(TRITONSERVER_Error *error)
    : Error(TRITONSERVER_ErrorCode(error), TRITONSERVER_ErrorMessage(error)) {
  TRITONSERVER_ErrorDelete(error);
}

} // namespace cgc_triton
