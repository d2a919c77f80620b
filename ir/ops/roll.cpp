// aten.roll: rotates the elements of dimensions.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferRoll(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  const Dims shifts = args.ints("shifts"), dims = args.ints("dims");
  const bool flat = dims.empty() && shifts.size() == 1;
  if (shifts.empty() || (!flat && shifts.size() != dims.size()))
    return rules::refuse("expected one of 'shifts' for each of 'dims', got " +
                         rules::toString(shifts) + " for " + rules::toString(dims));
  if (self.numElements() !=
      0) // As in LibTorch, which checks dims only if there are elements to move.
    for (int64_t dim : dims) {
      if (self.rank() == 0)
        return rules::mismatch("self", "of rank 1 or more", self);
      CGC_TRY(rules::wrapDim("dims", dim, self.rank()).status());
    }
  return rules::addDense(results, self.dtype, self.sizes);
}

} // namespace

const OpDef defs::Roll = {
    .schema = "(Tensor self, int[] shifts, int[] dims=[]) -> Tensor",
    .traits = kPure | kMove,
    .infer = inferRoll,
    .aten = "copy aten::roll",
    .batch = batch::otherDims,
    .gradient = [](GradientBuilder &b) -> Status {
      Dims shifts = b.args().ints("shifts");
      for (int64_t &shift : shifts)
        shift = -shift;
      b.set("self", b.call(OpKind::Roll, {b.grad(), Arg::ints(shifts), b.arg("dims")}));
      return Status::ok();
    },
    .doc = "self with its elements shifted by shifts[i] along dims[i], wrapping around. Without "
           "dims, shifts the flattened elements.",
};

} // namespace cgc::ir
