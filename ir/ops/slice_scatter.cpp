// aten.slice_scatter: replacement of a range of one dimension.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/view_rules.h"

namespace cgc::ir {
namespace {

Status inferSliceScatter(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self"), &src = args.tensor("src");
  llvm::SmallVector<Inferred, 1> slice;
  CGC_TRY(rules::addSlice(args, slice));
  if (src.sizes != slice.front().type.sizes)
    return rules::mismatch("src", rules::toString(slice.front().type.sizes) + ", as the slice",
                           src);
  return rules::addDense(results, self.dtype, self.sizes);
}

} // namespace

const OpDef defs::SliceScatter = {
    .schema = "(Tensor self, Tensor src, int dim=0, int? start=none, int? end=none, int step=1) -> "
              "Tensor",
    .traits = kPure | kMove,
    .infer = inferSliceScatter,
    .batch =
        [](const BatchCall &call) {
          const TensorType &self = call.args.tensor("self");
          const int64_t dim = batch::dimOf(call, self);
          return batch::Join(call)
              .add(call.args["self"], batch::without(self, dim))
              .add(call.args["src"], batch::without(self, dim))
              .state();
        },
    .gradient = [](GradientBuilder &b) -> Status {
      if (b.needs("self"))
        b.set("self",
              b.call(OpKind::SliceScatter, {b.grad(), b.zerosLike(b.input("src")), b.arg("dim"),
                                            b.arg("start"), b.arg("end"), b.arg("step")}));
      if (b.needs("src"))
        b.set("src", b.call(OpKind::Slice,
                            {b.grad(), b.arg("dim"), b.arg("start"), b.arg("end"), b.arg("step")}));
      return Status::ok();
    },
    .doc = "self with its slice by these bounds replaced by src, which has the sizes of the "
           "slice and is converted to the dtype of self.",
};

} // namespace cgc::ir
