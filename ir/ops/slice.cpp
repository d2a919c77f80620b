// aten.slice: a range of one dimension.
#include "ir/ops/batch_rules.h"
#include "ir/ops/view_rules.h"

namespace cgc::ir {

const OpDef defs::Slice = {
    .schema = "(Tensor self, int dim=0, int? start=none, int? end=none, int step=1) -> Tensor",
    .traits = kPure | kView,
    .infer = rules::addSlice,
    .batch = batch::parts,
    .doc = "Elements start, start + step, ... before end of dimension dim. Negative bounds count "
           "from the end; both are clamped.",
};

} // namespace cgc::ir
