// aten.to: converts dtype or device.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferTo(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  DType dtype = args.isNone("dtype") ? self.dtype : args.dtype("dtype");
  bool sameDevice = args.isNone("device") || args["device"].as<DeviceKind>() == self.device;
  if (dtype == self.dtype && sameDevice)
    return rules::addAlias(results, self);
  return rules::addDense(results, dtype, self.sizes);
}

} // namespace

const OpDef defs::To = {
    .schema = "(Tensor self, dtype? dtype=none, device? device=none) -> Tensor",
    .traits = kPure | kView | kMove,
    .infer = inferTo,
    .evaluate = host::to,
    .rowArgs = [](const InferArgs &) { return RowArgs{"self"}; },
    .batch = batch::copy,
    .gradient = gradient::identity,
    .doc =
        "self with this dtype on this device. self itself if neither changes, else a dense copy.",
};

} // namespace cgc::ir
