// cgc.squared_error: one kernel on cuda; else the difference, its multiple, and the sum of its
// squares.
#include "backend/kernels.h"
#include "backend/ops/tensor_math.h"
#include "runtime/kernels/rowwise/squared_error.h"

namespace cgc::backend {
namespace {

/// The kernel is one cluster. More elements keep all SMs busy in several launches.
constexpr int64_t kMostElements = int64_t(1) << 20;

} // namespace

Status lowerSquaredError(const ir::Node &node, BucketBuilder &builder) {
  const Place self = builder.place(node.arg("self").value()),
              target = builder.place(node.arg("target").value()),
              loss = builder.allocate(*node.result(0)),
              gradient = builder.allocate(*node.result(1));
  const double lossFactor = *node.arg("loss_factor").asNumber(),
               gradientFactor = *node.arg("gradient_factor").asNumber();
  const int64_t elements = self.type().numElements();
  if (elements <= kMostElements && launch({.kernel = "squared_error_f32",
                                           .blocks = kSquaredErrorBlocks,
                                           .threads = kSquaredErrorThreads,
                                           .reads = {self, target},
                                           .writes = {loss, gradient},
                                           .ints = {elements},
                                           .floats = {lossFactor, gradientFactor}},
                                          builder))
    return Status::ok();
  TensorMath math(builder);
  const Place difference = math.sub(self, target), square = math.mul(difference, difference),
              sum = builder.temporary(loss.dtype, {});
  builder.callInto("aten::sum", "IntList_out",
                   {builder.tensor(square), NoneArg{}, false, NoneArg{}}, sum);
  math.mul(sum, math.number(lossFactor, loss.dtype), loss);
  math.mul(difference, math.number(gradientFactor, loss.dtype), gradient);
  return Status::ok();
}

} // namespace cgc::backend
