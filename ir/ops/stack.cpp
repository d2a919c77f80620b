// aten.stack: joins along a new dimension.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferStack(const InferArgs &args, rules::Results &results) {
  auto tensors = args.tensors("tensors");
  if (tensors.empty())
    return rules::refuse("expected 'tensors' to have an element");
  rules::Promotion promotion;
  Dims sizes = tensors.front()->sizes;
  for (const TensorType *tensor : tensors) {
    promotion.add(*tensor);
    if (tensor->sizes != sizes)
      return rules::mismatch("tensors", "all of sizes " + rules::toString(sizes), *tensor);
  }
  CGC_ASSIGN_OR_RETURN(int64_t dim, rules::wrapDim("dim", args.integer("dim"),
                                                   static_cast<int64_t>(sizes.size()) + 1));
  sizes.insert(sizes.begin() + dim, static_cast<int64_t>(tensors.size()));
  return rules::addDense(results, promotion.result(), sizes);
}

} // namespace

const OpDef defs::Stack = {
    .schema = "(Tensor[] tensors, int dim=0) -> Tensor",
    .traits = kPure | kMove | kAnyStrides,
    .infer = inferStack,
    .batch =
        [](const BatchCall &call) {
          const int64_t dim = batch::dimOf(call, call.result());
          batch::Join join(call);
          for (const Arg &tensor : call.tensors()) {
            batch::DimMap map = batch::leading(tensor.value()->tensor(), call.result().rank());
            for (int64_t &to : map)
              to += to >= dim;
            join.add(tensor, map);
          }
          return join.state();
        },
    .gradient = [](GradientBuilder &b) -> Status {
      int64_t index = 0;
      for (Value *tensor : b.inputs("tensors")) {
        if (b.needs(tensor))
          b.set(tensor, b.call(OpKind::Select, {b.grad(), b.arg("dim"), index}));
        ++index;
      }
      return Status::ok();
    },
    .doc = "Tensors of equal sizes along a new dimension dim. Dtypes are promoted.",
};

} // namespace cgc::ir
