// aten.index_add: slices added to those that an index picks.
#include "ir/op_builder.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferIndexAdd(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self"), &index = args.tensor("index"),
                   &source = args.tensor("source");
  CGC_TRY(rules::sameDType(args, "self", {"source"}));
  if (self.rank() == 0)
    return rules::mismatch("self", "a tensor with dimensions", self);
  CGC_ASSIGN_OR_RETURN(const int64_t dim, rules::wrapDim("dim", args.integer("dim"), self.rank()));
  if (index.rank() != 1 || (index.dtype != DType::I64 && index.dtype != DType::I32))
    return rules::mismatch("index", "a vector of dtype i64 or i32", index);
  Dims expected = self.sizes;
  expected[dim] = index.sizes[0];
  if (source.sizes != expected)
    return rules::mismatch("source", rules::toString(expected), source);
  return rules::addDense(results, self.dtype, self.sizes);
}

Result<Values> defineIndexAdd(OpBuilder &b) {
  const Dims &sizes = b.input("self")->tensor().sizes;
  const int64_t given = b.args().integer("dim");
  const int64_t dim = given < 0 ? given + static_cast<int64_t>(sizes.size()) : given;
  if (sizes[dim] == 0) // LibTorch reads no index then.
    return Values{b.call(OpKind::Contiguous, {b.arg("self")})};
  Value *source = b.input("source");
  const Arg &alpha = b.arg("alpha");
  if (alpha != Arg(1) && alpha != Arg(1.0))
    source = b.mul(source, alpha);
  Arg::List indices(static_cast<size_t>(dim));
  indices.emplace_back(b.to(b.input("index"), DType::I64));
  return Values{b.call(OpKind::IndexPut, {b.arg("self"), std::move(indices), source, true})};
}

} // namespace

const OpDef defs::IndexAdd = {
    .schema = "(Tensor self, int dim, Tensor index, Tensor source, number alpha=1) -> Tensor",
    .traits = kPure | kMove,
    .infer = inferIndexAdd,
    .decompose = defineIndexAdd,
    .doc = "self with alpha times each slice of source along dim added to the slice that index "
           "picks. One dtype.",
};

} // namespace cgc::ir
