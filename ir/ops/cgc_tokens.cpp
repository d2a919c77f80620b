// cgc.tokens: a class token before the patches, plus positions.
#include "ir/op_builder.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferCgcTokens(const InferArgs &args, rules::Results &results) {
  const TensorType &patches = args.tensor("patches");
  if (patches.rank() != 3 || !isFloating(patches.dtype))
    return rules::mismatch("patches", "[B, N, E] of a floating dtype", patches);
  CGC_TRY(rules::sameDType(args, "patches", {"class_token", "positions"}));
  int64_t batch = patches.sizes[0], count = patches.sizes[1] + 1, width = patches.sizes[2];
  const TensorType &token = args.tensor("class_token");
  if (llvm::ArrayRef(token.sizes) != llvm::ArrayRef({width}))
    return rules::mismatch("class_token", rules::toString({width}), token);
  if (!args.isNone("positions") &&
      llvm::ArrayRef(args.tensor("positions").sizes) != llvm::ArrayRef({count, width}))
    return rules::mismatch("positions", rules::toString({count, width}), args.tensor("positions"));
  return rules::addDense(results, patches.dtype, {batch, count, width});
}

Result<Values> defineCgcTokens(OpBuilder &b) {
  Value *patches = b.input("patches");
  const int64_t batch = patches->tensor().sizes[0], width = patches->tensor().sizes[2];
  Value *token = b.reshape(b.input("class_token"), {1, 1, width});
  Value *tokens = b.call(OpKind::Cat, {Arg::List{b.expand(token, {batch, 1, width}), patches}, 1});
  return Values{b.arg("positions").isNone() ? tokens : b.add(tokens, b.arg("positions"))};
}

} // namespace

const OpDef defs::CgcTokens = {
    .schema = "(Tensor patches, Tensor class_token, Tensor? positions=none) -> Tensor",
    .traits = kPure | kMove,
    .infer = inferCgcTokens,
    .decompose = defineCgcTokens,
    .doc = "class_token [E] before each row of patches [B, N, E], plus positions [1 + N, E]: [B, 1 "
           "+ N, E]. Floating dtypes.",
};

} // namespace cgc::ir
