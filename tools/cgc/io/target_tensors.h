// TargetTensors: the inputs or outputs of a bucket, in memory of the plan's target.
#pragma once

#include "runtime/base/tensor_view.h"
#include "runtime/exec/buffer.h"
#include "runtime/plan/plan.h"

#include <vector>

namespace cgc::tool {

class TargetTensors final {
public:
  /// Allocates inputs with random values that are the same on every machine. For target cuda, on
  /// the current GPU.
  static Result<TargetTensors> randomInputs(DeviceKind target,
                                            const std::vector<IoTensor> &tensors);
  /// Allocates outputs with undefined values.
  static Result<TargetTensors> outputs(DeviceKind target, const std::vector<IoTensor> &tensors);

  /// The tensors, in order. They borrow from this object and from the plan.
  const std::vector<TensorView> &views() const { return views_; }

private:
  std::vector<Buffer> buffers_;
  std::vector<TensorView> views_;
};

} // namespace cgc::tool
