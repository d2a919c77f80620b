// aten.transpose: swaps two dimensions.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferTranspose(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(int64_t a, rules::wrapDim("dim0", args.integer("dim0"), self.rank()));
  CGC_ASSIGN_OR_RETURN(int64_t b, rules::wrapDim("dim1", args.integer("dim1"), self.rank()));
  Dims sizes = self.sizes, strides = self.strides;
  if (a != b) { // False also for rank 0, which has no dimensions to swap.
    std::swap(sizes[a], sizes[b]);
    std::swap(strides[a], strides[b]);
  }
  return rules::addView(results, self, sizes, strides);
}

} // namespace

const OpDef defs::Transpose = {
    .schema = "(Tensor self, int dim0, int dim1) -> Tensor",
    .traits = kPure | kView,
    .infer = inferTranspose,
    .batch =
        [](const BatchCall &call) {
          if (call.result().rank() == 0)
            return call.state(call.first());
          batch::DimMap order = batch::broadcast(call.result(), call.result());
          std::swap(order[batch::dimOf(call, call.result(), "dim0")],
                    order[batch::dimOf(call, call.result(), "dim1")]);
          return batch::permuted(call, order);
        },
    .gradient =
        [](GradientBuilder &b) {
          b.set("self", b.call(OpKind::Transpose, {b.grad(), b.arg("dim0"), b.arg("dim1")}));
          return Status::ok();
        },
    .doc = "self with dimensions dim0 and dim1 swapped.",
};

} // namespace cgc::ir
