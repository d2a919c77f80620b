// cgc.rows: one row of each sequence.
#include "ir/gradient.h"
#include "ir/op_builder.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferCgcRows(const InferArgs &args, rules::Results &results) {
  const TensorType &input = args.tensor("input");
  if (input.rank() != 3 || input.sizes[1] == 0)
    return rules::mismatch("input", "[B, T, E] with at least one row", input);
  if (!args.isNone("index")) {
    const TensorType &index = args.tensor("index");
    if ((index.dtype != DType::I64 && index.dtype != DType::I32) ||
        llvm::ArrayRef(index.sizes) != llvm::ArrayRef({input.sizes[0]}))
      return rules::mismatch("index", "[" + llvm::Twine(input.sizes[0]) + "] of dtype i64 or i32",
                             index);
  }
  return rules::addDense(results, input.dtype, {input.sizes[0], input.sizes[2]});
}

/// The gradient at the row that was taken, zeros at the others.
Status backwardCgcRows(GradientBuilder &b) {
  const Dims sizes = b.input("input")->tensor().sizes; // [B, T, E]
  const Arg end = sizes[1];
  Value *rows = b.call(OpKind::Arange, {0, end, 1, DType::I64});
  Value *index = b.input("index");
  Arg taken = 0;
  if (index)
    taken = b.reshape(b.to(index, DType::I64), {sizes[0], 1, 1});
  Value *isTaken = b.call(OpKind::Eq, {b.reshape(rows, {1, sizes[1], 1}), taken});
  b.set("input", b.where(isTaken, b.expand(b.call(OpKind::Unsqueeze, {b.grad(), 1}), sizes)));
  return Status::ok();
}

Result<Values> defineCgcRows(OpBuilder &b) {
  Value *input = b.input("input"), *index = b.input("index");
  if (!index)
    return Values{b.call(OpKind::Select, {input, 1, 0})};
  const Dims sizes = input->tensor().sizes; // [B, T, E]
  index = b.reshape(b.to(index, DType::I64), {sizes[0], 1, 1});
  Value *row = b.call(OpKind::Gather, {input, 1, b.expand(index, {sizes[0], 1, sizes[2]})});
  return Values{b.reshape(row, {sizes[0], sizes[2]})};
}

} // namespace

const OpDef defs::CgcRows = {
    .schema = "(Tensor input, Tensor? index=none) -> Tensor",
    .traits = kPure | kMove,
    .infer = inferCgcRows,
    .readsStrides =
        [](const InferArgs &, llvm::StringRef name, const TensorType &type) {
          return name == "input" && type.strides.back() == 1;
        },
    .gradient = backwardCgcRows,
    .decompose = defineCgcRows,
    .doc = "Row index[b], in [0, T), of each input[b] of input [B, T, E]: [B, E]; row 0 without an "
           "index. The input may have any strides.",
};

} // namespace cgc::ir
