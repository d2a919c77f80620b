// masked_fill: one where(mask, value, self).
#include "backend/index_bounds.h"
#include "backend/kernels.h"
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerMaskedFill(const ir::Node &node, BucketBuilder &builder) {
  Place result = builder.allocate(*node.result());
  noteReplacedIndex(node, builder);
  Place self = builder.place(node.arg("self").value()),
        mask = builder.place(node.arg("mask").value());
  const ir::Arg &arg = node.arg("value");
  std::optional<Operand> value = operand(arg, builder);
  if (auto *tensor = value ? std::get_if<Place>(&*value) : nullptr;
      tensor && tensor->dtype != result.dtype) {
    Place converted = builder.temporary(result.dtype, tensor->sizes);
    builder.copy(*tensor, converted);
    *tensor = converted;
  }
  if (value && launchWhere(mask, *value, self, result, builder))
    return Status::ok();
  Place filling =
      arg.isValue() ? std::get<Place>(*value) : scalarTensor(arg, result.dtype, builder);
  builder.callInto("aten::where", "self_out",
                   {builder.tensor(mask), builder.tensor(filling), builder.tensor(self)}, result);
  return Status::ok();
}

} // namespace cgc::backend
