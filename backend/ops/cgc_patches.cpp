// cgc.patches: one kernel on cuda.
#include "backend/kernels.h"
#include "backend/lowering.h"
#include "runtime/kernels/rowwise/patches.h"

namespace cgc::backend {

Result<bool> launchPatches(const ir::Node &node, BucketBuilder &builder) {
  const Place image = builder.place(node.arg("image").value()),
              result = builder.allocate(*node.result());
  const auto patch = *node.arg("patch").asInts();
  return launch({.kernel = kernelNamed("patches", image.dtype),
                 .blocks = patchesBlocks(result.type().numBytes()),
                 .threads = kPatchesThreads,
                 .reads = {image},
                 .writes = {*mergeLeading(result, 2)},
                 .ints = {patch[0], patch[1]}},
                builder);
}

} // namespace cgc::backend
