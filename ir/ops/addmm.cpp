// aten.addmm: a matrix product plus a matrix.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferAddmm(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self"), &a = args.tensor("mat1"), &b = args.tensor("mat2");
  for (llvm::StringRef name : {"mat1", "mat2"})
    if (args.tensor(name).rank() != 2)
      return rules::mismatch(name, "of rank 2", args.tensor(name));
  if (self.dtype == DType::Bool)
    return rules::mismatch("self", "of a numeric dtype", self);
  CGC_TRY(rules::sameDType(args, "self", {"mat1", "mat2"}));
  if (a.sizes[1] != b.sizes[0])
    return rules::mismatch("mat2",
                           "[" + llvm::Twine(a.sizes[1]) + ", N] for a 'mat1' [M, " +
                               llvm::Twine(a.sizes[1]) + "]",
                           b);
  Dims sizes = {a.sizes[0], b.sizes[1]};
  if (!rules::broadcastsTo(self.sizes, sizes))
    return rules::mismatch("self", "broadcastable to " + rules::toString(sizes), self);
  return rules::addDense(results, self.dtype, sizes);
}

} // namespace

const OpDef defs::Addmm = {
    .schema = "(Tensor self, Tensor mat1, Tensor mat2, number beta=1, number alpha=1) -> Tensor",
    .traits = kPure | kGemm,
    .infer = inferAddmm,
    .batch =
        [](const BatchCall &call) {
          return batch::Join(call)
              .add(call.args["self"], batch::broadcast(call.args.tensor("self"), call.result()))
              .add(call.args["mat1"], {0, batch::kCombined})
              .add(call.args["mat2"], {batch::kCombined, 1})
              .state();
        },
    .gradient = [](GradientBuilder &b) { return gradient::addedProduct(b, "mat1", "mat2"); },
    .doc = "beta * self + alpha * (mat1 [M, K] times mat2 [K, N]); self is broadcast to [M, N].",
};

} // namespace cgc::ir
