// aten.topk: largest elements.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferTopk(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(int64_t dim, rules::wrapDim("dim", args.integer("dim"), self.rank()));
  Dims sizes = self.sizes;
  const int64_t k = args.integer("k"), size = sizes.empty() ? 1 : sizes[dim];
  if (k < 0 || k > size)
    return rules::mismatch(
        "k", "at most the size " + llvm::Twine(size) + " of dimension " + llvm::Twine(dim), k);
  if (self.dtype == DType::Bool)
    return rules::mismatch("self", "of a numeric dtype", self);
  if (!sizes.empty())
    sizes[dim] = k;
  CGC_TRY(rules::addDense(results, self.dtype, sizes));
  return rules::addDense(results, DType::I64, sizes);
}

} // namespace

const OpDef defs::TopK = {
    .schema =
        "(Tensor self, int k, int dim=-1, bool largest=true, bool sorted=true) -> (Tensor, Tensor)",
    .traits = kPure | kReduction,
    .infer = inferTopk,
    .aten = "aten::topk.values",
    .batch = batch::otherDims,
    .gradient = gradient::picked,
    .doc = "Two results: the k largest (or smallest) elements along dim, and their indices (i64).",
};

} // namespace cgc::ir
