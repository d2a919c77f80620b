// cgc.max_pool2d_backward: the gradient of maximum pooling.
#include "ir/op_builder.h"
#include "ir/ops/window_rules.h"

namespace cgc::ir {
namespace {

Status inferCgcMaxPool2dBackward(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  llvm::SmallVector<Inferred, 1> pooled;
  CGC_TRY(rules::maxPool<2>(args, pooled));
  for (llvm::StringRef name : {"grad_output", "indices"})
    if (args.tensor(name).sizes != pooled.front().type.sizes)
      return rules::mismatch(
          name, rules::toString(pooled.front().type.sizes) + ", as the maxima of 'self'",
          args.tensor(name));
  if (args.tensor("indices").dtype != DType::I64)
    return rules::mismatch("indices", "of dtype i64", args.tensor("indices"));
  CGC_TRY(rules::sameDType(args, "self", {"grad_output"}));
  return rules::addDense(results, self.dtype, self.sizes);
}

Result<Values> defineCgcMaxPool2dBackward(OpBuilder &b) {
  // Images [..., H * W], whose pixels the indices count.
  const auto flat = [&](Value *images) { return b.call(OpKind::Flatten, {images, -2}); };
  Value *self = b.input("self");
  Value *zeros = flat(b.zerosLike(self)), *indices = flat(b.input("indices")),
        *grad = flat(b.input("grad_output"));
  Value *sums = b.call(OpKind::ScatterAdd, {zeros, -1, indices, grad});
  return Values{b.reshape(sums, self->tensor().sizes)};
}

} // namespace

const OpDef defs::CgcMaxPool2dBackward = {
    .schema = "(Tensor grad_output, Tensor self, int[] kernel_size, int[] stride, int[] padding, "
              "int[] dilation, bool ceil_mode, Tensor indices) -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferCgcMaxPool2dBackward,
    .decompose = defineCgcMaxPool2dBackward,
    .doc = "The gradient of self: grad_output added at the places `indices` of the maxima.",
};

} // namespace cgc::ir
