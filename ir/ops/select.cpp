// aten.select: one index along one dimension.
#include "ir/ops/batch_rules.h"
#include "ir/ops/view_rules.h"

namespace cgc::ir {

const OpDef defs::Select = {
    .schema = "(Tensor self, int dim, int index) -> Tensor",
    .traits = kPure | kView,
    .infer = rules::addSelect,
    .batch = batch::parts,
    .doc = "self at this index of dimension dim, which is dropped. A negative index counts from "
           "the end.",
};

} // namespace cgc::ir
