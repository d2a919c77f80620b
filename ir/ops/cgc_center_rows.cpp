// cgc.center_rows: a weight with each row's mean subtracted.
#include "ir/op_builder.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferCgcCenterRows(const InferArgs &args, rules::Results &results) {
  const TensorType &weight = args.tensor("weight");
  if (weight.rank() != 2 || weight.dtype != DType::F32)
    return rules::mismatch("weight", "f32[N,K]", weight);
  const DType dtype = args.dtype("dtype");
  if (dtype != DType::F16 && dtype != DType::BF16)
    return rules::refuse("expected 'dtype' to be f16 or bf16, got " +
                         llvm::Twine(llvm::StringRef(dtypeName(dtype))));
  return rules::addDense(results, DType::F32, weight.sizes);
}

Result<Values> defineCgcCenterRows(OpBuilder &b) {
  Value *mean = b.call(OpKind::Mean, {b.arg("weight"), Arg::ints(Dims{1}), true});
  return Values{b.sub(b.arg("weight"), mean)};
}

} // namespace

const OpDef defs::CgcCenterRows = {
    .schema = "(Tensor weight, dtype dtype) -> Tensor",
    .traits = kPure | kMove,
    .infer = inferCgcCenterRows,
    .decompose = defineCgcCenterRows,
    .doc =
        "weight, f32 [N, K], with each row's mean subtracted, in numbers that dtype, f16 or bf16, "
        "can represent. Some are not rounded to nearest, so that each row sums to nearly 0. For "
        "constants, which the pass fold computes; when lowered, it only subtracts the mean.",
};

} // namespace cgc::ir
