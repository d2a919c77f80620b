// aten.cdist: distances between the rows of two matrices.
#include "ir/ops/batch_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferCdist(const InferArgs &args, rules::Results &results) {
  const TensorType &x1 = args.tensor("x1"), &x2 = args.tensor("x2");
  for (llvm::StringRef name : {"x1", "x2"})
    if (args.tensor(name).rank() < 2 || !isFloating(args.tensor(name).dtype))
      return rules::mismatch(name, "[..., rows, columns] of a floating dtype", args.tensor(name));
  CGC_TRY(rules::sameDType(args, "x1", {"x2"}));
  if (x1.sizes.back() != x2.sizes.back())
    return rules::mismatch("x2", "of " + llvm::Twine(x1.sizes.back()) + " columns, as 'x1'", x2);
  if (!(args.number("p") >= 0))
    return rules::refuse("expected 'p' to be at least 0");
  if (!args.isNone("compute_mode") &&
      (args.integer("compute_mode") < 0 || args.integer("compute_mode") > 2))
    return rules::mismatch("compute_mode", "0, 1 or 2", args.integer("compute_mode"));
  CGC_ASSIGN_OR_RETURN(Dims sizes,
                       rules::broadcast("'x1' and 'x2'", llvm::ArrayRef(x1.sizes).drop_back(2),
                                        llvm::ArrayRef(x2.sizes).drop_back(2)));
  sizes.append({x1.sizes[x1.rank() - 2], x2.sizes[x2.rank() - 2]});
  return rules::addDense(results, x1.dtype, sizes);
}

} // namespace

const OpDef defs::Cdist = {
    .schema = "(Tensor x1, Tensor x2, float p=2.0, int? compute_mode=none) -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferCdist,
    .aten = "copy aten::cdist",
    .batch =
        [](const BatchCall &call) { // As x1 times x2 transposed.
          const int64_t rank = call.result().rank();
          batch::Join join(call);
          for (llvm::StringRef name : {"x1", "x2"}) {
            batch::DimMap map = batch::broadcast(call.args.tensor(name), call.result());
            map.back() = batch::kCombined;
            map[map.size() - 2] = name == "x1" ? rank - 2 : rank - 1;
            join.add(call.args[name], map);
          }
          return join.state();
        },
    .doc = "The p-norms of the differences of the rows of x1 [..., P, M] and x2 [..., R, M]: "
           "[..., P, R]. compute_mode chooses how p=2 is computed, as in LibTorch: by default by "
           "a matrix product for more than 25 rows.",
};

} // namespace cgc::ir
