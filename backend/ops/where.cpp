// where: cgc's own kernel on cuda; else LibTorch's, which takes tensors only: numbers become 0-d
// tensors in device memory.
#include "backend/index_bounds.h"
#include "backend/kernels.h"
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerWhere(const ir::Node &node, BucketBuilder &builder) {
  Place result = builder.allocate(*node.result());
  noteReplacedIndex(node, builder);
  const ir::Arg &self = node.arg("self"), &other = node.arg("other");
  Place condition = builder.place(node.arg("condition").value());
  const std::optional<Operand> x = operand(self, builder), z = operand(other, builder);
  if (x && z && launchWhere(condition, *x, *z, result, builder))
    return Status::ok();
  auto tensor = [&](const ir::Arg &arg) -> AtenArg {
    return arg.isValue() ? builder.arg(arg)
                         : builder.tensor(scalarTensor(arg, result.dtype, builder));
  };
  AtenArg chosen = tensor(self), rest = tensor(other);
  builder.callInto("aten::where", "self_out", {builder.tensor(condition), chosen, rest}, result);
  return Status::ok();
}

} // namespace cgc::backend
