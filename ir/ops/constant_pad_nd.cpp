// aten.constant_pad_nd: pads a tensor with a constant.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferConstantPadNd(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  const Dims pad = args.ints("pad");
  if (pad.size() % 2 != 0 || pad.size() / 2 > self.sizes.size())
    return rules::refuse("expected 'pad' to be two numbers for each of at most " +
                         llvm::Twine(self.rank()) + " dimensions, got " + rules::toString(pad));
  Dims sizes = self.sizes;
  for (size_t i = 0; i < pad.size(); ++i) {
    // The first pair belongs to the last dimension. Negative numbers crop, first one side, then the
    // other.
    int64_t &size = sizes[sizes.size() - 1 - i / 2];
    if (pad[i] < 0 && size + pad[i] < 0)
      return rules::refuse("'pad' " + rules::toString(pad) +
                           " crops more than there is of 'self' " + rules::toString(self.sizes));
    size += std::min<int64_t>(pad[i], 0);
  }
  for (size_t i = 0; i < pad.size(); ++i) {
    int64_t &size = sizes[sizes.size() - 1 - i / 2];
    if (pad[i] > 0 && __builtin_add_overflow(size, pad[i], &size))
      return rules::refuse("'pad' " + rules::toString(pad) + " is too large");
  }
  return rules::addDense(results, self.dtype, sizes);
}

} // namespace

const OpDef defs::ConstantPadNd = {
    .schema = "(Tensor self, int[] pad, number value=0) -> Tensor",
    .traits = kPure | kMove,
    .infer = inferConstantPadNd,
    .aten = "copy aten::constant_pad_nd",
    .batch =
        [](const BatchCall &call) {
          batch::DimMap map = batch::broadcast(call.result(), call.result());
          for (auto [i, pad] : llvm::enumerate(call.args.ints("pad")))
            if (pad != 0)
              map[map.size() - 1 - i / 2] = batch::kCombined;
          return batch::Join(call).add(call.args["self"], map).state();
        },
    .gradient = [](GradientBuilder &b) -> Status {
      Dims pad = b.args().ints("pad");
      for (int64_t &count : pad)
        count = -count;
      b.set("self", b.call(OpKind::ConstantPadNd, {b.grad(), Arg::ints(pad)}));
      return Status::ok();
    },
    .doc = "self padded with value: pad[0] elements before and pad[1] after it in the last "
           "dimension, pad[2] and pad[3] in the one before, and so on. Negative numbers crop.",
};

} // namespace cgc::ir
