// aten.randn: normally distributed random numbers.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  return rules::addDense(results, args.isNone("dtype") ? DType::F32 : args.dtype("dtype"),
                         args.ints("size"));
}

} // namespace

const OpDef defs::Randn = {
    .schema = "(int[] size, dtype? dtype=none) -> Tensor",
    .traits = kOpaque,
    .infer = infer,
    .doc = "Numbers of mean 0 and variance 1, fresh in each run; f32 unless dtype is given.",
};

} // namespace cgc::ir
