// aten.scatter_reduce: reduction of elements for each index.
#include "ir/ops/batch_rules.h"
#include "ir/ops/index_rules.h"

namespace cgc::ir {
namespace {

Status inferScatterReduce(const InferArgs &args, rules::Results &results) {
  const llvm::StringRef reduce = args.str("reduce");
  if (reduce != "sum" && reduce != "prod" && reduce != "mean" && reduce != "amax" &&
      reduce != "amin")
    return rules::refuse("expected 'reduce' to be sum, prod, mean, amax or amin, got '" + reduce +
                         "'");
  return rules::scatter(args, results);
}

} // namespace

const OpDef defs::ScatterReduce = {
    .schema =
        "(Tensor self, int dim, Tensor index, Tensor src, str reduce, bool include_self=true) "
        "-> Tensor",
    .traits = kPure | kMove,
    .infer = inferScatterReduce,
    .aten = "aten::scatter_reduce.two_out",
    .batch = batch::scatter,
    .doc = "As scatter_add, with the reduction sum, prod, mean, amax or amin. Without "
           "include_self an element of self counts only where no index points to.",
};

} // namespace cgc::ir
