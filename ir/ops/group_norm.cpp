// aten.group_norm: normalization over groups of channels.
#include "ir/ops/batch_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  const TensorType &input = args.tensor("input");
  if (input.rank() < 2 || !isFloating(input.dtype))
    return rules::mismatch("input", "[N, C, ...] of a floating dtype", input);
  const int64_t channels = input.sizes[1], groups = args.integer("num_groups");
  if (groups < 1 || channels < 1 || channels % groups != 0)
    return rules::mismatch("num_groups", "a divisor of " + llvm::Twine(channels) + " channels",
                           groups);
  CGC_TRY(rules::sameDType(args, "input", {"weight", "bias"}));
  for (llvm::StringRef name : {"weight", "bias"})
    if (!args.isNone(name) && args.tensor(name).sizes != Dims{channels})
      return rules::mismatch(name, "[" + llvm::Twine(channels) + "], as the channels of 'input'",
                             args.tensor(name));
  return rules::addDense(results, input.dtype, input.sizes);
}

} // namespace

const OpDef defs::GroupNorm = {
    .schema = "(Tensor input, int num_groups, Tensor? weight=none, Tensor? bias=none, float "
              "eps=1e-05) -> Tensor",
    .traits = kPure | kReduction,
    .infer = infer,
    .aten = "copy aten::group_norm(..., true)",
    .batch = batch::firstDim,
    .doc = "input [N, C, ...] normalized to zero mean and unit variance over each of num_groups "
           "groups of channels, times weight [C], plus bias [C]; floating dtypes.",
};

} // namespace cgc::ir
