// TargetTensors: allocates the tensors and fills inputs with random values.
#include "tools/cgc/io/target_tensors.h"

#include "runtime/exec/cuda_support.h"
#include "tools/cgc/io/tensors.h"

#include <cstring>

namespace cgc::tool {

Result<TargetTensors> TargetTensors::outputs(DeviceKind target,
                                             const std::vector<IoTensor> &tensors) {
  TargetTensors made;
  for (const IoTensor &tensor : tensors) {
    CGC_ASSIGN_OR_RETURN(Buffer buffer,
                         Buffer::allocate(target, *tensorBytes(tensor.dtype, tensor.sizes)));
    made.views_.push_back({buffer.data(), tensor.dtype, target, tensor.sizes, {}});
    made.buffers_.push_back(std::move(buffer));
  }
  return made;
}

Result<TargetTensors> TargetTensors::randomInputs(DeviceKind target,
                                                  const std::vector<IoTensor> &tensors) {
  CGC_ASSIGN_OR_RETURN(TargetTensors made, outputs(target, tensors));
  for (size_t i = 0; i < tensors.size(); ++i) {
    const HostTensor values = randomInput(tensors[i], i);
    std::byte *to = made.buffers_[i].data();
    if (target == DeviceKind::Cuda)
      CGC_TRY(
          CGC_CUDA(cudaMemcpy(to, values.bytes.data(), values.bytes.size(), cudaMemcpyHostToDevice),
                   "cannot copy an input to the GPU"));
    else if (!values.bytes.empty())
      std::memcpy(to, values.bytes.data(), values.bytes.size());
  }
  return made;
}

} // namespace cgc::tool
