// aten.sort: sort along a dimension.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferSort(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_TRY(rules::wrapDim("dim", args.integer("dim"), self.rank()).status());
  CGC_TRY(rules::addDense(results, self.dtype, self.sizes));
  return rules::addDense(results, DType::I64, self.sizes);
}

} // namespace

const OpDef defs::Sort = {
    .schema =
        "(Tensor self, bool stable=false, int dim=-1, bool descending=false) -> (Tensor, Tensor)",
    .traits = kPure | kReduction,
    .infer = inferSort,
    .aten = "aten::sort.values_stable",
    .batch = batch::otherDims,
    .gradient = gradient::picked,
    .doc = "Two results: the elements in order along dim, and their indices (i64). With stable, "
           "equal elements keep the order of self.",
};

} // namespace cgc::ir
