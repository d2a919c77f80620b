// aten.floor_divide: quotient rounded down.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferFloorDivide(const InferArgs &args, rules::Results &results) {
  return rules::pointwiseResult(args, {"self", "other"}, results, /*allowBool=*/false);
}

} // namespace

const OpDef defs::FloorDivide = {
    .schema = "(Tensor|number self, Tensor|number other) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = inferFloorDivide,
    .evaluate = host::floorDivide,
    .gradient = gradient::none,
    .doc = "floor(self / other), broadcast, dtypes promoted.",
};

} // namespace cgc::ir
