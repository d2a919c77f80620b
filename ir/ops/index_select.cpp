// aten.index_select: selects indices along one dimension.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/view_rules.h"

namespace cgc::ir {
namespace {

Status inferIndexSelect(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self"), &index = args.tensor("index");
  CGC_ASSIGN_OR_RETURN(int64_t dim, rules::wrapDim("dim", args.integer("dim"), self.rank()));
  if (index.rank() > 1)
    return rules::mismatch("index", "of rank 0 or 1", index);
  if (index.dtype != DType::I64 && index.dtype != DType::I32)
    return rules::mismatch("index", "of dtype i64 or i32", index);
  Dims sizes = self.sizes;
  if (self.rank() == 0) {
    if (index.numElements() != 1)
      return rules::mismatch("index", "of one element for a 0-d 'self'", index);
    return rules::addDense(results, self.dtype, sizes);
  }
  if (sizes[dim] == 0 && index.numElements() != 0)
    return rules::mismatch("self", "nonempty in dimension " + llvm::Twine(dim), self);
  sizes[dim] = index.numElements();
  return rules::addDense(results, self.dtype, sizes);
}

} // namespace

const OpDef defs::IndexSelect = {
    .schema = "(Tensor self, int dim, Tensor index) -> Tensor",
    .traits = kPure | kMove,
    .infer = inferIndexSelect,
    .batch =
        [](const BatchCall &call) {
          const TensorType &self = call.args.tensor("self");
          const int64_t dim = batch::dimOf(call, self);
          const batch::DimMap index(call.args.tensor("index").rank(), dim);
          return batch::Join(call)
              .add(call.args["self"], batch::without(self, dim))
              .add(call.args["index"], index)
              .state();
        },
    .gradient = [](GradientBuilder &b) -> Status {
      Value *self = b.input("self"), *index = b.input("index");
      if (self->tensor().rank() == 0)
        return gradient::identity(b);
      CGC_ASSIGN_OR_RETURN(const int64_t dim, rules::dimOfSelf(b.args()));
      Arg::List indices(static_cast<size_t>(dim) + 1);
      indices.back() = b.reshape(index, {index->tensor().numElements()});
      // Sums in a fixed order, unlike scatter_add on a GPU.
      b.set("self", b.call(OpKind::IndexPut, {b.zerosLike(self), indices, b.grad(), true}));
      return Status::ok();
    },
    .doc = "self with dimension dim replaced by its elements at index (0-d or 1-d, i32 or i64).",
};

} // namespace cgc::ir
