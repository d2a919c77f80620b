// cgc.embedding_backward: the gradient of an embedding's table.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  const TensorType &grad = args.tensor("grad_output");
  if (grad.rank() < 1)
    return rules::mismatch("grad_output", "[..., D]", grad);
  return rules::addDense(results, grad.dtype, {args.integer("num_weights"), grad.sizes.back()});
}

} // namespace

const OpDef defs::EmbeddingBackward = {
    .schema = "(Tensor grad_output, Tensor indices, int num_weights, int padding_idx=-1) -> Tensor",
    .traits = kPure | kMove,
    .infer = infer,
    .aten = "copy aten::embedding_dense_backward(grad_output, indices, num_weights, padding_idx, "
            "false)",
    .doc = "[num_weights, D]: each row is the sum of the rows of grad_output [..., D] whose index "
           "it is; row padding_idx is zero.",
};

} // namespace cgc::ir
