// aten.layer_norm: layer normalization.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/normalization_rules.h"

namespace cgc::ir {
namespace {

Status backwardLayerNorm(GradientBuilder &b) {
  Node *norm = b.replaceForward(
      OpKind::CgcLayerNormStatistics,
      {b.arg("input"), b.arg("normalized_shape"), b.arg("weight"), b.arg("bias"), b.number("eps")});
  Node *grads =
      b.callNode(OpKind::CgcLayerNormBackward,
                 {b.grad(), b.arg("input"), b.arg("normalized_shape"), norm->result(1),
                  norm->result(2), b.arg("weight"), b.needs("bias") ? b.arg("bias") : Arg()});
  b.set("input", grads->result(0));
  unsigned next = 1;
  for (llvm::StringRef name : {"weight", "bias"})
    if (b.input(name) && next < grads->numResults())
      b.set(name, grads->result(next++));
  return Status::ok();
}

} // namespace

const OpDef defs::LayerNorm = {
    .schema = "(Tensor input, int[] normalized_shape, Tensor? weight=none, Tensor? bias=none, "
              "float eps=1e-05) -> Tensor",
    .traits = kPure | kReduction,
    .infer =
        [](const InferArgs &args, rules::Results &results) {
          return rules::layerNorm(args, results, {"weight", "bias"});
        },
    .readsStrides =
        [](const InferArgs &args, llvm::StringRef name, const TensorType &type) {
          return name == "input" && hasDenseRows(type, args.ints("normalized_shape").size());
        },
    .rowArgs =
        [](const InferArgs &args) {
          return args.ints("normalized_shape").size() == 1 ? RowArgs{"input"} : RowArgs();
        },
    .batch =
        [](const BatchCall &call) {
          const int64_t normalized = call.args.ints("normalized_shape").size();
          const TensorType &input = call.args.tensor("input");
          batch::Join join(call);
          join.add(call.args["input"], batch::leading(input, input.rank() - normalized));
          return join.state();
        },
    .gradient = backwardLayerNorm,
    .doc =
        "input [..., normalized_shape] normalized to zero mean and unit variance over its last "
        "dimensions, times weight, plus bias. Both have sizes normalized_shape and input's dtype, "
        "or f32 if that has 16 bits: then everything is computed in f32 and rounded once.",
};

} // namespace cgc::ir
