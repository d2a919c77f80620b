// aten.scatter: replacement of one element for each index.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/index_rules.h"

namespace cgc::ir {

const OpDef defs::Scatter = {
    .schema = "(Tensor self, int dim, Tensor index, Tensor|number src) -> Tensor",
    .traits = kPure | kMove,
    .infer = rules::scatter,
    .batch = batch::scatter,
    .gradient = [](GradientBuilder &b) -> Status {
      if (b.needs("self"))
        b.set("self", b.call(OpKind::Scatter, {b.grad(), b.arg("dim"), b.arg("index"), 0}));
      return gradient::gathered(b, "src");
    },
    .doc = "self with result[i][index[i][j][k]][k] = src[i][j][k] for dim 1, for all of index. "
           "Indices must "
           "not repeat; a number stands for a src of equal elements.",
};

} // namespace cgc::ir
