// Copies: ops whose result holds the elements of `self` in order, where the result cannot be a
// view.
#include "backend/lowering.h"

#include "runtime/base/check.h"

namespace cgc::backend {

Status lowerCopy(const ir::Node &node, BucketBuilder &builder) {
  Place source = builder.place(node.arg("self").value());
  Place destination = builder.allocate(*node.result());
  if (destination.sizes != source.sizes) {
    // A reshape: the result is dense, so it can be written in the shape of the source.
    CGC_CHECK(destination.type().isContiguous());
    destination.sizes = source.sizes;
    destination.strides = ir::contiguousStrides(source.sizes);
  }
  builder.copy(source, destination);
  return Status::ok();
}

} // namespace cgc::backend
