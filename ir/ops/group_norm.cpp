// aten.group_norm: normalization over groups of channels.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferGroupNorm(const InferArgs &args, rules::Results &results) {
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

/// As that of layer_norm over the groups, whose statistics it computes again.
Status backwardGroupNorm(GradientBuilder &b) {
  Value *input = b.input("input"), *weight = b.input("weight");
  const Dims &sizes = input->tensor().sizes;
  const int64_t groups = b.arg("num_groups").as<int64_t>();
  int64_t width = sizes[1] / groups;
  for (const int64_t size : llvm::ArrayRef(sizes).drop_front(2))
    width *= size;
  const Arg shape = Arg::ints(Dims{width});
  const auto grouped = [&](Value *value) { return b.reshape(value, {sizes[0] * groups, width}); };
  Node *norm = b.callNode(OpKind::CgcLayerNormStatistics,
                          {grouped(input), shape, Arg(), Arg(), b.number("eps")});
  const rules::Channels channels = rules::channelsOf(input->tensor());
  if (b.needs("input")) {
    Value *grad = weight ? b.mul(b.grad(), b.reshape(weight, channels.sizes)) : b.grad();
    Node *grads =
        b.callNode(OpKind::CgcLayerNormBackward, {grouped(grad), grouped(input), shape,
                                                  norm->result(1), norm->result(2), Arg(), Arg()});
    b.set("input", b.reshape(grads->result(0), sizes));
  }
  if (b.needs("weight")) {
    Value *normalized = b.reshape(norm->result(0), sizes);
    b.set("weight", b.sum(b.mul(b.grad(), normalized), channels.others, /*keepDim=*/false));
  }
  if (b.needs("bias"))
    b.set("bias", b.sum(b.grad(), channels.others, /*keepDim=*/false));
  return Status::ok();
}

} // namespace

const OpDef defs::GroupNorm = {
    .schema = "(Tensor input, int num_groups, Tensor? weight=none, Tensor? bias=none, float "
              "eps=1e-05) -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferGroupNorm,
    .aten = "copy aten::group_norm(..., true)",
    .batch = batch::firstDim,
    .gradient = backwardGroupNorm,
    .doc = "input [N, C, ...] normalized to zero mean and unit variance over each of num_groups "
           "groups of channels, times weight [C], plus bias [C]; floating dtypes.",
};

} // namespace cgc::ir
