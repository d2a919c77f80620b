// aten.select: one index along one dimension.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/view_rules.h"

namespace cgc::ir {

const OpDef defs::Select = {
    .schema = "(Tensor self, int dim, int index) -> Tensor",
    .traits = kPure | kView,
    .infer = rules::addSelect,
    .batch = batch::parts,
    .gradient =
        [](GradientBuilder &b) {
          const InferArgs args = b.args();
          CGC_ASSIGN_OR_RETURN(const int64_t dim, rules::dimOfSelf(args));
          const int64_t index = args.integer("index"), size = args.tensor("self").sizes[dim];
          b.set("self", gradient::placed(b, b.call(OpKind::Unsqueeze, {b.grad(), dim}), dim,
                                         index < 0 ? index + size : index, 1));
          return Status::ok();
        },
    .doc = "self at this index of dimension dim, which is dropped. A negative index counts from "
           "the end.",
};

} // namespace cgc::ir
