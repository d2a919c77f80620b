// Checks launches of gather and scatter_add_*.
#include "runtime/kernels/rowwise/gather.h"

#include "runtime/kernels/kernel_checks.h"

namespace cgc {
namespace {

/// The launch for indices into dimension 1 of x; `result` has the elements of one of them.
Result<GatherLaunch> checkIndexed(const LaunchView &launch, const OperandView &result) {
  const OperandView &x = launch.reads[0], &indices = launch.reads[1];
  if (!isDenseOf(x, x.dtype, elementsOf(x)) || x.sizes.size() != 3 || elementsOf(x) == 0)
    return refuseLaunch("x has to be dense, [outer, n, inner]");
  const uint64_t count = elementsOf(indices);
  if (!isIndicesOf(indices, count) || indices.sizes.size() != 3 || count == 0 ||
      indices.sizes[0] != x.sizes[0] || indices.sizes[2] != x.sizes[2])
    return refuseLaunch("indices have to be dense i64 or i32, [outer, k, inner]");
  const uint64_t elements = elementsOf(result);
  if (elements > INT32_MAX)
    return refuseLaunch("y has to have at most 2^31 - 1 elements");
  if (launch.grid[0] < 1 || launch.grid[0] > 1 << 16 ||
      !hasShape(launch, launch.grid[0], kGatherThreads))
    return refuseLaunch("the grid has to be {up to 65536, 1, 1}, the block {256, 1, 1}, without "
                        "shared memory");
  return GatherLaunch{x.sizes[1], indices.sizes[1], static_cast<uint32_t>(elements),
                      Divider(static_cast<uint32_t>(x.sizes[2])),
                      Divider(static_cast<uint32_t>(elements / x.sizes[0]))};
}

} // namespace

Result<GatherLaunch> checkGather(const LaunchView &launch) {
  CGC_ASSIGN_OR_RETURN(const GatherLaunch checked, checkIndexed(launch, launch.reads[1]));
  if (!isDenseOf(launch.writes[0], launch.reads[0].dtype, checked.elements))
    return refuseLaunch("y has to be dense, an element for each index");
  return checked;
}

Result<GatherLaunch> checkScatterAdd(const LaunchView &launch, DType dtype) {
  CGC_ASSIGN_OR_RETURN(const GatherLaunch checked, checkIndexed(launch, launch.reads[0]));
  if (launch.reads[0].dtype != dtype || !isDenseOf(launch.writes[0], dtype, checked.elements))
    return refuseLaunch("x and y have to be dense, of as many elements");
  if (!isDenseOf(launch.reads[2], dtype, elementsOf(launch.reads[1])))
    return refuseLaunch("the source has to be dense, an element for each index");
  return checked;
}

CGC_KERNEL_CHECK(gather, checkGather)
CGC_FLOAT_KERNEL_CHECKS(scatter_add, checkScatterAdd)

} // namespace cgc
