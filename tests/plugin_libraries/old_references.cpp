// A libcgc_reference without a reference of any kernel, as one that is older than the kernels.
#include "runtime/kernels/reference.h"

extern "C" __attribute__((visibility("default"))) const cgc::References *
cgcReferences(uint32_t abi) {
  static constexpr cgc::References kNone = {nullptr, 0};
  return abi == cgc::kReferenceAbi ? &kNone : nullptr;
}
