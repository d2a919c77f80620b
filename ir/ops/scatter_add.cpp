// aten.scatter_add: sum of elements for each index.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/index_rules.h"

namespace cgc::ir {

const OpDef defs::ScatterAdd = {
    .schema = "(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    .traits = kPure | kMove,
    .infer = rules::scatter,
    .batch = batch::scatter,
    .gradient = [](GradientBuilder &b) -> Status {
      b.set("self", b.grad());
      return gradient::gathered(b, "src");
    },
    .doc = "self with src[i][j][k] added to result[i][index[i][j][k]][k] for dim 1, for all of "
           "index.",
};

} // namespace cgc::ir
