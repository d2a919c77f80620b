// index_put: a where for a mask; else one call of LibTorch.
#include "backend/kernels.h"
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerIndexPut(const ir::Node &node, BucketBuilder &builder) {
  Place result = builder.allocate(*node.result());
  const ir::Arg::List &indices = node.arg("indices").list();
  const ir::Arg &first = indices.front();
  if (!first.isValue() || first.value()->tensor().dtype != DType::Bool) {
    builder.callThenCopy("aten::index_put", "", callArgs(node, builder), {result});
    return Status::ok();
  }
  // The rule accepts a mask of leading dimensions only, with one element.
  Place mask = builder.place(first.value()), self = builder.place(node.arg("self").value()),
        value = builder.place(node.arg("values").value());
  mask.sizes.resize(self.sizes.size(), 1);
  mask.strides.resize(self.sizes.size(), 0);
  value.sizes.clear();
  value.strides.clear();
  if (!launchWhere(mask, value, self, result, builder))
    builder.callInto("aten::where", "self_out",
                     {builder.tensor(mask), builder.tensor(value), builder.tensor(self)}, result);
  return Status::ok();
}

} // namespace cgc::backend
