// aten.linspace: evenly spaced numbers.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferLinspace(const InferArgs &args, rules::Results &results) {
  if (args.integer("steps") < 0)
    return rules::mismatch("steps", "at least 0", args.integer("steps"));
  return rules::addDense(results, args.isNone("dtype") ? DType::F32 : args.dtype("dtype"),
                         {args.integer("steps")});
}

} // namespace

const OpDef defs::Linspace = {
    .schema = "(number start, number end, int steps, dtype? dtype=none) -> Tensor",
    .traits = kPure | kMove,
    .infer = inferLinspace,
    .aten = "aten::linspace.out(start, end, steps)",
    .doc = "steps numbers from start to end, both included; f32 unless dtype is given.",
};

} // namespace cgc::ir
