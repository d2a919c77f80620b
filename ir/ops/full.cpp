// aten.full: a tensor with one value everywhere.
#include "ir/ops/batch_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferFull(const InferArgs &args, rules::Results &results) {
  DType dtype = args.isNone("dtype") ? rules::numberDType(args["fill_value"]) : args.dtype("dtype");
  return rules::addDense(results, dtype, args.ints("size"));
}

} // namespace

const OpDef defs::Full = {
    .schema = "(int[] size, number fill_value, dtype? dtype=none) -> Tensor",
    .traits = kPure | kMove,
    .infer = inferFull,
    .batch = batch::constant,
    .doc = "A tensor of these sizes filled with fill_value. Without dtype: bool for a bool, i64 "
           "for an int, f32 for a float. zeros and ones are imported as this op.",
};

} // namespace cgc::ir
