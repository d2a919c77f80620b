// cgc.dropout: one kernel on cuda, which draws the numbers too; else those of cgc.uniform.
#include "backend/kernels.h"
#include "backend/ops/lower_uniform.h"
#include "backend/ops/tensor_math.h"
#include "runtime/kernels/random/uniform.h"

namespace cgc::backend {

Status lowerTrainDropout(const ir::Node &node, BucketBuilder &builder) {
  const Place result = builder.allocate(*node.result());
  const double p = *node.arg("p").asNumber();
  if (p == 1) {
    builder.fill(result, 0.0);
    return Status::ok();
  }
  const Place self = densePlace(builder.place(node.arg("self").value()), builder),
              seed = builder.place(node.arg("seed").value()),
              offset = builder.place(node.arg("offset").value());
  const auto stream = node.arg("stream").as<int64_t>();
  const uint64_t elements = self.type().numElements();
  if (elements == 0 || launch({.kernel = kernelNamed("dropout", self.dtype),
                               .blocks = uniformBlocks(elements),
                               .threads = kUniformThreads,
                               .reads = {seed, offset, self},
                               .writes = {result},
                               .ints = {stream},
                               .floats = {p}},
                              builder))
    return Status::ok();
  const Place drawn = builder.temporary(DType::F32, self.sizes),
              drops = builder.temporary(DType::Bool, self.sizes);
  fillUniform(drawn, seed, offset, stream, builder);
  builder.callInto("aten::lt", "Scalar_out", {builder.tensor(drawn), p}, drops);
  TensorMath math(builder);
  const Place scaled = math.mul(self, math.number(1 / (1 - p), self.dtype));
  builder.callInto(
      "aten::where", "self_out",
      {builder.tensor(drops), builder.tensor(math.number(0.0, self.dtype)), builder.tensor(scaled)},
      result);
  return Status::ok();
}

} // namespace cgc::backend
