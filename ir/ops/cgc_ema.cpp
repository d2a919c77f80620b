// cgc.ema: exponential moving averages of a list of parameters.
#include "ir/ops/optimizer_rules.h"

namespace cgc::ir {
namespace {

Status inferCgcEma(const InferArgs &args, rules::Results &results) {
  const auto averages = args.tensors("averages"), parameters = args.tensors("parameters");
  if (averages.size() != parameters.size())
    return rules::refuse("expected 'averages' to have as many tensors as 'parameters'");
  for (size_t i = 0; i < averages.size(); ++i) {
    if (averages[i]->sizes != parameters[i]->sizes || averages[i]->dtype != parameters[i]->dtype ||
        !isFloating(averages[i]->dtype))
      return rules::mismatch("averages", "of floating dtypes, with dtype and sizes of 'parameters'",
                             *averages[i]);
    CGC_TRY(rules::addDense(results, averages[i]->dtype, averages[i]->sizes));
  }
  if (!args.isNone("skip") &&
      (args.tensor("skip").rank() != 0 || args.tensor("skip").dtype != DType::Bool))
    return rules::mismatch("skip", "bool[]", args.tensor("skip"));
  return Status::ok();
}

Result<Values> defineCgcEma(OpBuilder &b) {
  if (std::optional<Values> split = rules::splitByDType(b, {"averages", "parameters"}))
    return *split;
  const double weight = 1 - b.number("decay");
  Values results;
  for (auto [average, parameter] : llvm::zip_equal(b.inputs("averages"), b.inputs("parameters"))) {
    Value *moved = b.call(OpKind::Lerp, {average, parameter, weight});
    results.push_back(
        b.arg("skip").isNone() ? moved : b.call(OpKind::Where, {b.arg("skip"), average, moved}));
  }
  return results;
}

} // namespace

const OpDef defs::CgcEma = {
    .schema = "(Tensor[] averages, Tensor[] parameters, float decay, Tensor? skip=none) -> "
              "Tensor[]",
    .traits = kPure | kMove,
    .infer = inferCgcEma,
    .decompose = defineCgcEma,
    .doc = "decay * average + (1 - decay) * parameter for each pair; the averages if skip, bool[], "
           "is true.",
};

} // namespace cgc::ir
