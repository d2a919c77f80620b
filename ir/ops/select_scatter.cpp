// aten.select_scatter: replacement of one index along one dimension.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/view_rules.h"

namespace cgc::ir {
namespace {

Status inferSelectScatter(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self"), &src = args.tensor("src");
  llvm::SmallVector<Inferred, 1> slice;
  CGC_TRY(rules::addSelect(args, slice));
  if (src.sizes != slice.front().type.sizes)
    return rules::mismatch("src", rules::toString(slice.front().type.sizes) + ", as the selection",
                           src);
  return rules::addDense(results, self.dtype, self.sizes);
}

} // namespace

const OpDef defs::SelectScatter = {
    .schema = "(Tensor self, Tensor src, int dim, int index) -> Tensor",
    .traits = kPure | kMove,
    .infer = inferSelectScatter,
    .batch =
        [](const BatchCall &call) {
          const TensorType &self = call.args.tensor("self");
          const int64_t dim = batch::dimOf(call, self);
          batch::DimMap src;
          for (int64_t d = 0; d < self.rank(); ++d)
            if (d != dim)
              src.push_back(d);
          return batch::Join(call)
              .add(call.args["self"], batch::without(self, dim))
              .add(call.args["src"], src)
              .state();
        },
    .gradient = [](GradientBuilder &b) -> Status {
      if (b.needs("self"))
        b.set("self", b.call(OpKind::SelectScatter, {b.grad(), b.zerosLike(b.input("src")),
                                                     b.arg("dim"), b.arg("index")}));
      if (b.needs("src"))
        b.set("src", b.call(OpKind::Select, {b.grad(), b.arg("dim"), b.arg("index")}));
      return Status::ok();
    },
    .doc = "self with its elements at this index of dimension dim replaced by src, which lacks "
           "the dimension and is converted to the dtype of self.",
};

} // namespace cgc::ir
