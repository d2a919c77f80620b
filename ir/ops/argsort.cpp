// aten.argsort: the order of elements.
#include "ir/gradient.h"
#include "ir/op_builder.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferArgsort(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_TRY(rules::wrapDim("dim", args.integer("dim"), self.rank()).status());
  return rules::addDense(results, DType::I64, self.sizes);
}

Result<Values> defineArgsort(OpBuilder &b) {
  Node *sorted =
      b.callNode(OpKind::Sort, {b.arg("self"), b.arg("stable"), b.arg("dim"), b.arg("descending")});
  return Values{sorted->result(1)};
}

} // namespace

const OpDef defs::Argsort = {
    .schema = "(Tensor self, bool stable=false, int dim=-1, bool descending=false) -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferArgsort,
    .gradient = gradient::none,
    .decompose = defineArgsort,
    .doc = "The indices (i64) of the second result of sort.",
};

} // namespace cgc::ir
