// cgc.patches: one kernel on cuda; else one copy from a strided view of the image with one slice
// per patch.
#include "backend/kernels.h"
#include "backend/lowering.h"
#include "runtime/kernels/rowwise/patches.h"

namespace cgc::backend {

Status lowerPatches(const ir::Node &node, BucketBuilder &builder) {
  Place image = builder.place(node.arg("image").value());
  auto patch = *node.arg("patch").asInts();
  Place result = builder.allocate(*node.result());
  if (launch({.kernel = kernelNamed("patches", image.dtype),
              .blocks = patchesBlocks(result.type().numBytes()),
              .threads = kPatchesThreads,
              .reads = {image},
              .writes = {*mergeLeading(result, 2)},
              .ints = {patch[0], patch[1]}},
             builder))
    return Status::ok();
  const ir::Dims &sizes = image.sizes, &strides = image.strides;
  int64_t channels = sizes[1], columns = result.sizes[2], pixels = channels * patch[0] * patch[1];
  int64_t height = sizes[2] / patch[0], width = sizes[3] / patch[1];

  Place source = image, destination = result;
  source.sizes = {sizes[0], height, width, channels, patch[0], patch[1]};
  source.strides = {
      strides[0], strides[2] * patch[0], strides[3] * patch[1], strides[1], strides[2], strides[3]};
  destination.sizes = source.sizes;
  destination.strides = {result.strides[0],   width * columns, columns,
                         patch[0] * patch[1], patch[1],        1};
  builder.copy(source, destination);
  if (columns == pixels)
    return Status::ok();
  Place padding = result;
  padding.sizes[2] = columns - pixels;
  padding.offset += static_cast<uint64_t>(pixels) * dtypeSize(result.dtype);
  builder.fill(padding, 0.0);
  return Status::ok();
}

} // namespace cgc::backend
