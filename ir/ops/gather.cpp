// aten.gather: picks one element for each index.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferGather(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self"), &index = args.tensor("index");
  CGC_ASSIGN_OR_RETURN(int64_t dim, rules::wrapDim("dim", args.integer("dim"), self.rank()));
  if (index.dtype != DType::I64 && index.dtype != DType::I32)
    return rules::mismatch("index", "of dtype i64 or i32", index);
  if (index.numElements() == 0)
    return rules::addDense(results, self.dtype, index.sizes);
  // A 0-d tensor counts as a tensor of size [1].
  if (std::max<int64_t>(index.rank(), 1) != std::max<int64_t>(self.rank(), 1))
    return rules::mismatch("index", "of rank " + llvm::Twine(self.rank()) + ", as 'self'", index);
  for (int64_t d = 0; d < self.rank(); ++d)
    if (d == dim ? self.sizes[d] == 0 : index.sizes[d] > self.sizes[d])
      return rules::mismatch("index",
                             "no larger than 'self' " + rules::toString(self.sizes) +
                                 " but in dimension " + llvm::Twine(dim),
                             index);
  return rules::addDense(results, self.dtype, index.sizes);
}

} // namespace

const OpDef defs::Gather = {
    .schema = "(Tensor self, int dim, Tensor index) -> Tensor",
    .traits = kPure | kMove,
    .infer = inferGather,
    .batch =
        [](const BatchCall &call) {
          const TensorType &self = call.args.tensor("self"), &index = call.args.tensor("index");
          return batch::Join(call)
              .add(call.args["self"], batch::without(self, batch::dimOf(call, self)))
              .add(call.args["index"], batch::leading(index, index.rank()))
              .state();
        },
    .gradient = [](GradientBuilder &b) -> Status {
      Value *self = b.input("self"), *index = b.input("index"), *zeros = b.zerosLike(self);
      b.set("self", index->tensor().numElements() == 0
                        ? zeros
                        : b.call(OpKind::ScatterAdd,
                                 {zeros, b.arg("dim"), b.to(index, DType::I64), b.grad()}));
      return Status::ok();
    },
    .doc = "result[i][j][k] = self[i][index[i][j][k]][k] for dim 1; sizes of index, dtype of self. "
           "index is i32 or i64.",
};

} // namespace cgc::ir
