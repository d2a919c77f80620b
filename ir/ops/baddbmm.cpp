// aten.baddbmm: a batched matrix product plus a tensor.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferBaddbmm(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self"), &a = args.tensor("batch1"),
                   &b = args.tensor("batch2");
  for (llvm::StringRef name : {"batch1", "batch2"})
    if (args.tensor(name).rank() != 3)
      return rules::mismatch(name, "of rank 3", args.tensor(name));
  if (self.dtype == DType::Bool)
    return rules::mismatch("self", "of a numeric dtype", self);
  CGC_TRY(rules::sameDType(args, "self", {"batch1", "batch2"}));
  for (llvm::StringRef name : {"beta", "alpha"})
    if (args[name].is<double>() && !isFloating(self.dtype))
      return rules::refuse("expected '" + name + "' to be an int for operands of " +
                           std::string(dtypeName(self.dtype)));
  if (a.sizes[0] != b.sizes[0] || a.sizes[2] != b.sizes[1])
    return rules::mismatch("batch2",
                           "[" + llvm::Twine(a.sizes[0]) + ", " + llvm::Twine(a.sizes[2]) +
                               ", N], to fit 'batch1' " + rules::toString(a.sizes),
                           b);
  Dims sizes = {a.sizes[0], a.sizes[1], b.sizes[2]};
  if (!rules::broadcastsTo(self.sizes, sizes))
    return rules::mismatch("self", "broadcastable to " + rules::toString(sizes), self);
  return rules::addDense(results, self.dtype, sizes);
}

} // namespace

const OpDef defs::Baddbmm = {
    .schema =
        "(Tensor self, Tensor batch1, Tensor batch2, number beta=1, number alpha=1) -> Tensor",
    .traits = kPure | kGemm,
    .infer = inferBaddbmm,
    .batch =
        [](const BatchCall &call) {
          return batch::Join(call)
              .add(call.args["self"], batch::broadcast(call.args.tensor("self"), call.result()))
              .add(call.args["batch1"], {0, 1, batch::kCombined})
              .add(call.args["batch2"], {0, batch::kCombined, 2})
              .state();
        },
    .gradient = [](GradientBuilder &b) { return gradient::addedProduct(b, "batch1", "batch2"); },
    .doc = "beta * self + alpha * (batch1 [B, M, K] times batch2 [B, K, N]); self is broadcast to "
           "[B, M, N].",
};

} // namespace cgc::ir
