// aten.squeeze: drops dimensions of size 1.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferSqueeze(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  llvm::SmallVector<bool, 6> listed(self.rank(), args.isNone("dim"));
  if (!args.isNone("dim") && !args.ints("dim").empty()) {
    CGC_ASSIGN_OR_RETURN(listed, rules::listedDims(args, "dim", self.rank()));
  }
  Dims sizes, strides;
  for (int64_t d = 0; d < self.rank(); ++d)
    if (!listed[d] || self.sizes[d] != 1) {
      sizes.push_back(self.sizes[d]);
      strides.push_back(self.strides[d]);
    }
  return rules::addView(results, self, sizes, strides);
}

} // namespace

const OpDef defs::Squeeze = {
    .schema = "(Tensor self, int[]? dim=none) -> Tensor",
    .traits = kPure | kView,
    .infer = inferSqueeze,
    .batch = batch::view,
    .gradient = gradient::reshaped,
    .doc = "self without its dimensions of size 1, or without those listed in dim; a listed "
           "dimension of another size stays.",
};

} // namespace cgc::ir
