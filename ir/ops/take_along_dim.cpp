// aten.take_along_dim: elements at indices along a dimension.
#include "ir/op_builder.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

/// The sizes of both tensors once they are broadcast but for `dim`.
struct TakenSizes {
  Dims self, indices;
  int64_t dim = 0;
};
Result<TakenSizes> takenSizes(const InferArgs &args) {
  const TensorType &self = args.tensor("self"), &indices = args.tensor("indices");
  if (indices.dtype != DType::I64)
    return rules::mismatch("indices", "of dtype i64", indices);
  if (args.isNone("dim"))
    return TakenSizes{{self.numElements()}, {indices.numElements()}, 0};
  if (self.rank() != indices.rank() || self.rank() == 0)
    return rules::mismatch("indices", "of the rank of 'self', which has dimensions", indices);
  CGC_ASSIGN_OR_RETURN(const int64_t dim, rules::wrapDim("dim", args.integer("dim"), self.rank()));
  Dims other = self.sizes;
  other[dim] = indices.sizes[dim];
  CGC_ASSIGN_OR_RETURN(Dims sizes, rules::broadcast("'self' and 'indices'", other, indices.sizes));
  TakenSizes taken{sizes, sizes, dim};
  taken.self[dim] = self.sizes[dim];
  return taken;
}

Status inferTakeAlongDim(const InferArgs &args, rules::Results &results) {
  CGC_ASSIGN_OR_RETURN(const TakenSizes sizes, takenSizes(args));
  return rules::addDense(results, args.tensor("self").dtype, sizes.indices);
}

Result<Values> defineTakeAlongDim(OpBuilder &b) {
  CGC_ASSIGN_OR_RETURN(const TakenSizes sizes, takenSizes(b.args()));
  const auto shaped = [&](llvm::StringRef name, const Dims &to) {
    Value *value = b.input(name);
    return b.arg("dim").isNone() ? b.reshape(value, to) : b.expand(value, to);
  };
  Value *self = shaped("self", sizes.self);
  return Values{b.call(OpKind::Gather, {self, sizes.dim, shaped("indices", sizes.indices)})};
}

} // namespace

const OpDef defs::TakeAlongDim = {
    .schema = "(Tensor self, Tensor indices, int? dim=none) -> Tensor",
    .traits = kPure | kMove,
    .infer = inferTakeAlongDim,
    .decompose = defineTakeAlongDim,
    .doc = "The elements of self at the indices along dim; both broadcast in the other "
           "dimensions. Without dim, of the flattened tensors.",
};

} // namespace cgc::ir
