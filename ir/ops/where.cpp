// aten.where: elementwise choice.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferWhere(const InferArgs &args, rules::Results &results) {
  const TensorType &condition = args.tensor("condition");
  if (condition.dtype != DType::Bool)
    return rules::mismatch("condition", "of dtype bool", condition);
  rules::Promotion promotion;
  Dims sizes = condition.sizes;
  for (llvm::StringRef name : {"self", "other"}) {
    promotion.add(args[name]);
    if (args.isTensor(name)) {
      CGC_ASSIGN_OR_RETURN(sizes, rules::broadcast("'condition', 'self' and 'other'", sizes,
                                                   args.tensor(name).sizes));
    }
  }
  return rules::addDense(results, promotion.result(), sizes);
}

} // namespace

const OpDef defs::Where = {
    .schema = "(Tensor condition, Tensor|number self, Tensor|number other) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = inferWhere,
    .gradient = [](GradientBuilder &b) -> Status {
      Value *condition = b.input("condition");
      if (b.needs("self"))
        b.set("self", b.where(condition, b.grad()));
      if (b.needs("other"))
        b.set("other", gradient::unless(b, condition, b.grad()));
      return Status::ok();
    },
    .doc = "self where condition (bool) holds, else other; all broadcast, dtypes of self and other "
           "promoted.",
};

} // namespace cgc::ir
