// A libcgc_reference whose one reference is that of an older kernel, of other parameters.
#include "runtime/kernels/reference.h"

extern "C" __attribute__((visibility("default"))) const cgc::References *
cgcReferences(uint32_t abi) {
  static constexpr cgc::Reference kOld = {"softmax_f32", /*abiHash=*/0,
                                          [](const cgc::ReferenceArguments &) {}};
  static constexpr cgc::References kReferences = {&kOld, 1};
  return abi == cgc::kReferenceAbi ? &kReferences : nullptr;
}
