// cgc.linear: linear with an activation and a residual or a gate.
#include "ir/ops/linear_rules.h"
#include "ir/ops/row_statistics_rules.h"

namespace cgc::ir {
namespace {

Status inferCgcLinear(const InferArgs &args, rules::Results &results) {
  CGC_ASSIGN_OR_RETURN(Dims sizes, rules::fusedLinear(args));
  CGC_TRY(rules::sameDType(args, "input", {"residual"}));
  if (!args.isNone("residual") && args.tensor("residual").sizes != sizes)
    return rules::mismatch("residual", rules::toString(sizes), args.tensor("residual"));
  if (args.boolean("gates") && args.isNone("residual"))
    return rules::mismatch("gates", "false without a residual", 1);
  CGC_TRY(rules::addDense(results, args.tensor("input").dtype, sizes));
  return rules::addRowStatistics(args, results);
}

Result<Values> defineCgcLinear(OpBuilder &b) {
  Value *product = b.call(OpKind::Linear, {b.arg("input"), b.arg("weight"), b.arg("bias")});
  Value *y = rules::activated(b, product, b.args().str("activation"));
  if (b.args().boolean("gates"))
    y = b.mul(y, b.input("residual"));
  else if (!b.arg("residual").isNone())
    y = b.add(y, b.arg("residual"));
  Values values{y};
  rules::defineRowStatistics(b, values);
  return values;
}

} // namespace

const OpDef defs::CgcLinear = {
    .schema =
        "(Tensor input, Tensor weight, Tensor? bias=none, Tensor? residual=none, str "
        "activation=\"none\", bool row_statistics=false, bool gates=false) -> (Tensor, Tensor?)",
    .traits = kPure | kGemm,
    .infer = inferCgcLinear,
    .readsStrides =
        [](const InferArgs &, llvm::StringRef name, const TensorType &type) {
          return name == "input" && type.rank() > 0 && hasDenseRows(type, 1);
        },
    .rowArgs =
        [](const InferArgs &args) {
          // Row statistics have the rows of all sequences in one dimension.
          return args.boolean("row_statistics") ? RowArgs() : RowArgs{"input", "residual"};
        },
    .decompose = defineCgcLinear,
    .doc = "activation(input [..., K] times the transpose of weight [N, K], plus bias [N]) plus "
           "residual [..., N]: [..., N]. activation is none, gelu, gelu_tanh, quick_gelu, silu, "
           "relu or tanh. Floating dtypes. With gates, the residual is a factor. With "
           "row_statistics, the second result is the row "
           "statistics of the first: f32 [R, ceil(N / 64), 2] for its R rows, the sum of each 64 "
           "elements of a row (fewer at its end) and the sum of their squares.",
};

} // namespace cgc::ir
