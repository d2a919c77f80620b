// aten.embedding: embedding lookup.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferEmbedding(const InferArgs &args, rules::Results &results) {
  const TensorType &weight = args.tensor("weight"), &indices = args.tensor("indices");
  if (weight.rank() != 2)
    return rules::mismatch("weight", "[N, D]", weight);
  if (indices.dtype != DType::I64 && indices.dtype != DType::I32)
    return rules::mismatch("indices", "of dtype i64 or i32", indices);
  if (weight.sizes[0] == 0 && indices.numElements() != 0)
    return rules::mismatch("weight", "nonempty", weight);
  Dims sizes = indices.sizes;
  sizes.push_back(weight.sizes[1]);
  return rules::addDense(results, weight.dtype, sizes);
}

Status backwardEmbedding(GradientBuilder &b) {
  if (b.arg("scale_grad_by_freq").as<bool>())
    return rules::refuse("its gradient is divided by how often an index occurs "
                         "(scale_grad_by_freq), which cgc does not do");
  const int64_t rows = b.input("weight")->tensor().sizes[0];
  int64_t padding = b.arg("padding_idx").as<int64_t>();
  if (padding >= rows)
    padding = -1; // There is no such row.
  b.set("weight",
        b.call(OpKind::CgcEmbeddingBackward, {b.grad(), b.arg("indices"), rows, padding}));
  return Status::ok();
}

} // namespace

const OpDef defs::Embedding = {
    .schema = "(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=false) "
              "-> Tensor",
    .traits = kPure | kMove,
    .infer = inferEmbedding,
    .batch =
        [](const BatchCall &call) {
          const TensorType &indices = call.args.tensor("indices");
          return batch::Join(call)
              .add(call.args["weight"], {batch::kCombined, indices.rank()})
              .add(call.args["indices"], batch::leading(indices, indices.rank()))
              .state();
        },
    .gradient = backwardEmbedding,
    .doc =
        "Row indices[i...] of weight [N, D]: [sizes of indices..., D]. The other arguments are "
        "about gradients: that of row padding_idx is 0, and cgc has none with scale_grad_by_freq.",
};

} // namespace cgc::ir
