// The C API: errors, codes, element types.
#include "runtime/c_api/handles.h"

using namespace cgc;

namespace {

/// One code of each API. The C API has no code for a comparison.
constexpr std::pair<Code, cgc_code> kCodes[] = {
    {Code::Ok, CGC_OK},
    {Code::Failed, CGC_FAILED},
    {Code::Usage, CGC_USAGE},
    {Code::InvalidFile, CGC_INVALID_FILE},
    {Code::Unsupported, CGC_UNSUPPORTED},
    {Code::Device, CGC_DEVICE},
    {Code::OutOfMemory, CGC_OUT_OF_MEMORY},
    {Code::Busy, CGC_BUSY},
};

bool isDType(cgc_dtype dtype) {
  return int(dtype) >= 0 && int(dtype) < kNumDTypes;
}

} // namespace

cgc_code c_api::report(const Status &status, cgc_error **error) {
  const auto found = std::ranges::find(kCodes, status.code(), &std::pair<Code, cgc_code>::first);
  const cgc_code code = found == std::end(kCodes) ? CGC_FAILED : found->second;
  if (code != CGC_OK && error)
    try {
      *error = new cgc_error{code, status.message()};
    } catch (const std::bad_alloc &) {
      *error = nullptr; // The code says it.
    }
  return code;
}

const char *cgc_version(void) {
  return CGC_VERSION;
}

const char *cgc_code_name(cgc_code code) {
  const auto found = std::ranges::find(kCodes, code, &std::pair<Code, cgc_code>::second);
  return found == std::end(kCodes) ? "unknown" : codeName(found->first).data();
}

const char *cgc_dtype_name(cgc_dtype dtype) {
  return isDType(dtype) ? dtypeName(DType(dtype)).data() : nullptr;
}

size_t cgc_dtype_size(cgc_dtype dtype) {
  return isDType(dtype) ? dtypeSize(DType(dtype)) : 0;
}

cgc_code cgc_error_code(const cgc_error *error) {
  return error ? error->code : CGC_OK;
}

const char *cgc_error_message(const cgc_error *error) {
  return error ? error->message.c_str() : "";
}

void cgc_error_destroy(cgc_error *error) {
  delete error;
}
