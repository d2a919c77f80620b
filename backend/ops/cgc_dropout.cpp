// cgc.dropout: draws a number for each element, and scales the elements that stay.
#include "backend/kernels.h"
#include "backend/ops/lower_uniform.h"
#include "backend/ops/tensor_math.h"

namespace cgc::backend {

Status lowerTrainDropout(const ir::Node &node, BucketBuilder &builder) {
  const Place self = builder.place(node.arg("self").value()),
              result = builder.allocate(*node.result());
  const double p = *node.arg("p").asNumber();
  if (p == 1) {
    builder.fill(result, 0.0);
    return Status::ok();
  }
  const Place drawn = builder.temporary(DType::F32, self.sizes);
  fillUniform(drawn, builder.place(node.arg("seed").value()),
              builder.place(node.arg("offset").value()), node.arg("stream").as<int64_t>(), builder);
  const Place drops = builder.temporary(DType::Bool, self.sizes),
              scaled = builder.temporary(self.dtype, self.sizes);
  if (!launchCompare(CompareOp::Lt, drawn, std::nullopt, p, drops, builder))
    builder.callInto("aten::lt", "Scalar_out", {builder.tensor(drawn), p}, drops);
  const double scale = 1 / (1 - p);
  if (!launchElementwise(ElementwiseOp::Mul, self, std::nullopt, scale, scaled, builder))
    builder.callInto(
        "aten::mul", "out",
        {builder.tensor(self), builder.tensor(scalarTensor(scale, self.dtype, builder))}, scaled);
  if (!launchWhere(drops, 0.0, scaled, result, builder))
    builder.callInto("aten::where", "self_out",
                     {builder.tensor(drops), builder.tensor(scalarTensor(0.0, self.dtype, builder)),
                      builder.tensor(scaled)},
                     result);
  return Status::ok();
}

} // namespace cgc::backend
