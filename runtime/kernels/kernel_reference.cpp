// libcgc_reference: the table of all references and its entry point. A row of kernels.def without a
// reference does not link.
#include "runtime/kernels/kernel_table.h"
#include "runtime/kernels/reference.h"

#include <iterator>

namespace cgc {
namespace reference {

#define CGC_KERNEL(NAME, TRAITS, READS, WRITES, INTS, FLOATS, PARAMETERS)                          \
  void NAME##Reference(const ReferenceArguments &arguments);
#include "runtime/kernels/kernels.def"
void cublasLtMatmulReference(const ReferenceArguments &arguments);

} // namespace reference

namespace {

constexpr Reference kReferences[] = {
#define CGC_KERNEL(NAME, TRAITS, READS, WRITES, INTS, FLOATS, PARAMETERS)                          \
  {#NAME, kernelAbiHash(PARAMETERS), reference::NAME##Reference},
#include "runtime/kernels/kernels.def"
    {"cublaslt.matmul", 0, reference::cublasLtMatmulReference},
};
constexpr References kTable = {kReferences, std::size(kReferences)};

} // namespace
} // namespace cgc

extern "C" __attribute__((visibility("default"))) const cgc::References *
cgcReferences(uint32_t abi) {
  return abi == cgc::kReferenceAbi ? &cgc::kTable : nullptr;
}
