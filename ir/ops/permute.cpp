// aten.permute: reorders dimensions.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferPermute(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  Dims dims = args.ints("dims"), sizes, strides;
  if (static_cast<int64_t>(dims.size()) != self.rank())
    return rules::refuse("expected 'dims' to list " + llvm::Twine(self.rank()) +
                         " dimensions, got " + rules::toString(dims));
  llvm::SmallVector<bool, 6> seen(dims.size());
  for (int64_t dim : dims) {
    CGC_ASSIGN_OR_RETURN(int64_t d, rules::wrapDim("dims", dim, self.rank()));
    if (seen[d])
      return rules::refuse("dimension " + llvm::Twine(dim) + " appears twice in 'dims'");
    seen[d] = true;
    sizes.push_back(self.sizes[d]);
    strides.push_back(self.strides[d]);
  }
  return rules::addView(results, self, sizes, strides);
}

} // namespace

const OpDef defs::Permute = {
    .schema = "(Tensor self, int[] dims) -> Tensor",
    .traits = kPure | kView,
    .infer = inferPermute,
    .batch =
        [](const BatchCall &call) {
          Dims order = call.args.ints("dims");
          for (int64_t &dim : order)
            dim += dim < 0 ? call.result().rank() : 0;
          return batch::permuted(call, order);
        },
    .gradient =
        [](GradientBuilder &b) {
          const Dims dims = b.args().ints("dims");
          Dims inverse(dims.size());
          for (auto [i, dim] : llvm::enumerate(dims))
            inverse[static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(dims.size()) : dim)] =
                static_cast<int64_t>(i);
          b.set("self", b.call(OpKind::Permute, {b.grad(), Arg::ints(inverse)}));
          return Status::ok();
        },
    .doc = "Dimension i of the result is dimension dims[i] of self.",
};

} // namespace cgc::ir
