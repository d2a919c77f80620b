// aten.outer: the outer product.
#include "ir/op_builder.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferOuter(const InferArgs &args, rules::Results &results) {
  for (llvm::StringRef name : {"self", "vec2"})
    if (args.tensor(name).rank() != 1)
      return rules::mismatch(name, "of one dimension", args.tensor(name));
  rules::Promotion promotion;
  promotion.add(args.tensor("self"));
  promotion.add(args.tensor("vec2"));
  return rules::addDense(results, promotion.result(),
                         {args.tensor("self").sizes[0], args.tensor("vec2").sizes[0]});
}

Result<Values> defineOuter(OpBuilder &b) {
  return Values{b.mul(b.call(OpKind::Unsqueeze, {b.arg("self"), 1}), b.arg("vec2"))};
}

} // namespace

const OpDef defs::Outer = {
    .schema = "(Tensor self, Tensor vec2) -> Tensor",
    .traits = kPure | kMove,
    .infer = inferOuter,
    .decompose = defineOuter,
    .doc = "The products of the elements of self [N] and vec2 [M]: [N, M]. Dtypes are promoted.",
};

} // namespace cgc::ir
