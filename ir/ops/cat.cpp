// aten.cat: joins along a dimension.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferCat(const InferArgs &args, rules::Results &results) {
  auto tensors = args.tensors("tensors");
  if (tensors.empty())
    return rules::refuse("expected 'tensors' to have an element");
  rules::Promotion promotion;
  const TensorType *first = nullptr;
  Dims sizes;
  int64_t dim = 0;
  for (const TensorType *tensor : tensors) {
    promotion.add(*tensor);
    if (tensor->rank() == 0)
      return rules::mismatch("tensors", "of rank 1 or more", *tensor);
    if (tensor->rank() == 1 && tensor->sizes[0] == 0)
      continue; // LibTorch skips these whatever the rank of the others is.
    if (!first) {
      first = tensor;
      sizes = tensor->sizes;
      CGC_ASSIGN_OR_RETURN(dim, rules::wrapDim("dim", args.integer("dim"), tensor->rank()));
      continue;
    }
    Dims expected = first->sizes;
    if (tensor->rank() == first->rank())
      expected[dim] = tensor->sizes[dim];
    if (tensor->sizes != expected)
      return rules::mismatch("tensors",
                             "of sizes " + rules::toString(first->sizes) + " but for dimension " +
                                 llvm::Twine(dim),
                             *tensor);
    if (__builtin_add_overflow(sizes[dim], tensor->sizes[dim], &sizes[dim]))
      return rules::refuse("the result would be too large");
  }
  if (!first) // Nothing to concatenate: dim does not matter.
    sizes = {0};
  return rules::addDense(results, promotion.result(), sizes);
}

} // namespace

const OpDef defs::Cat = {
    .schema = "(Tensor[] tensors, int dim=0) -> Tensor",
    .traits = kPure | kMove | kAnyStrides,
    .infer = inferCat,
    .batch =
        [](const BatchCall &call) {
          const int64_t dim = batch::dimOf(call, call.result());
          batch::Join join(call);
          for (const Arg &tensor : call.tensors())
            if (const TensorType &type = tensor.value()->tensor(); type.numElements() > 0)
              join.add(tensor, batch::without(type, dim));
          return join.state();
        },
    .gradient = [](GradientBuilder &b) -> Status {
      const Dims &sizes = b.result()->tensor().sizes;
      int64_t dim = b.arg("dim").as<int64_t>(), start = 0;
      dim += dim < 0 ? static_cast<int64_t>(sizes.size()) : 0;
      for (Value *tensor : b.inputs("tensors")) {
        const TensorType &type = tensor->tensor();
        if (type.numElements() == 0) { // Perhaps of another rank, or dim is none of its dimensions.
          b.set(tensor, b.zerosLike(tensor));
          continue;
        }
        const int64_t end = start + type.sizes[static_cast<size_t>(dim)];
        if (b.needs(tensor))
          b.set(tensor, b.call(OpKind::Slice, {b.grad(), dim, start, end}));
        start = end;
      }
      return Status::ok();
    },
    .doc = "The tensors concatenated along dimension dim; all other sizes agree. Dtypes are "
           "promoted. Tensors of sizes [0] are skipped.",
};

} // namespace cgc::ir
