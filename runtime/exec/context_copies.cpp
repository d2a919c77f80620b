// Context: the tensors that a run copies to and from static buffers, and those that it uses in
// place.
#include "runtime/exec/context_impl.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cgc {
namespace {

/// The address of `view`, or of the rows of it that a run takes, where a graph could use them; null
/// if the bucket has other rows besides, or if they are not in one piece.
std::byte *addressInPlace(const IoTensor &tensor, const std::optional<RowRange> &rows,
                          const TensorView &view) {
  if (view.device != DeviceKind::Cuda)
    return nullptr;
  auto *const data = static_cast<std::byte *>(view.data);
  if (tensor.batchDim == kNoBatchDim || !rows)
    return data;
  const RowLayout layout = rowLayout(tensor);
  const bool isWhole = rows->count == tensor.sizes[tensor.batchDim];
  const bool isOnePiece = layout.blocks == 1 || rows->count == rows->total;
  return isWhole && isOnePiece ? data + layout.rowBytes * rows->begin : nullptr;
}

} // namespace

Status Context::Impl::fill(const Block &to, int value, uint64_t width, uint64_t blocks,
                           cudaStream_t on) {
  if (width == 0 || blocks == 0)
    return Status::ok();
  if (device == DeviceKind::Cuda)
    return blocks == 1 ? CGC_CUDA(cudaMemsetAsync(to.data, value, width, on), "cannot fill memory")
                       : CGC_CUDA(cudaMemset2DAsync(to.data, to.pitch, value, width, blocks, on),
                                  "cannot fill memory");
  for (uint64_t i = 0; i < blocks; ++i)
    std::memset(to.data + i * to.pitch, value, width);
  return Status::ok();
}

Status Context::Impl::copy(const Block &to, const Block &from, uint64_t width, uint64_t blocks,
                           cudaStream_t on) {
  if (width == 0 || blocks == 0) // Either pointer may be null.
    return Status::ok();
  if (to.data == from.data) // The caller's tensor is the static buffer.
    return Status::ok();
  if (device == DeviceKind::Cpu) {
    for (uint64_t i = 0; i < blocks; ++i)
      std::memmove(to.data + i * to.pitch, from.data + i * from.pitch, width);
    return Status::ok();
  }
  const cudaMemcpyKind kind = from.device == DeviceKind::Cpu ? cudaMemcpyHostToDevice
                              : to.device == DeviceKind::Cpu ? cudaMemcpyDeviceToHost
                                                             : cudaMemcpyDeviceToDevice;
  return blocks == 1 ? CGC_CUDA(cudaMemcpyAsync(to.data, from.data, width, kind, on), "cannot copy")
                     : CGC_CUDA(cudaMemcpy2DAsync(to.data, to.pitch, from.data, from.pitch, width,
                                                  blocks, kind, on),
                                "cannot copy");
}

Status Context::Impl::copyIn(const BucketCall &call, size_t input, cudaStream_t on) {
  const auto &[bound, bucket, rows, inputs, outputs] = call;
  const IoTensor &tensor = bucket.inputs[input];
  const TensorView &view = inputs[input];
  const Buffer &buffer = bound.memory.inputs[input];
  auto *const from = static_cast<std::byte *>(view.data);
  if (tensor.batchDim == kNoBatchDim || !rows) {
    if (tensor.batchDim != kNoBatchDim)
      bound.usedRows[input] = tensor.sizes[tensor.batchDim];
    return copy({buffer.data(), device, buffer.size()}, {from, view.device, buffer.size()},
                buffer.size(), 1, on);
  }
  const auto [blocks, rowBytes] = rowLayout(tensor);
  const uint64_t pitch = rowBytes * tensor.sizes[tensor.batchDim];
  const int64_t used =
      std::exchange(bound.usedRows[input], std::max(bound.usedRows[input], rows->count));
  CGC_TRY(copy({buffer.data(), device, pitch},
               {from + rowBytes * rows->begin, view.device, rowBytes * rows->total},
               rowBytes * rows->count, blocks, on));
  if (used > rows->count)
    CGC_TRY(fill({buffer.data() + rowBytes * rows->count, device, pitch}, 0,
                 rowBytes * (used - rows->count), blocks, on));
  bound.usedRows[input] = rows->count;
  return Status::ok();
}

Status Context::Impl::copyOut(const BucketCall &call, size_t output, cudaStream_t on) {
  const auto &[bound, bucket, rows, inputs, outputs] = call;
  const IoTensor &tensor = bucket.outputs[output];
  const TensorView &view = outputs[output];
  const Buffer &buffer = bound.memory.outputs[output];
  auto *const to = static_cast<std::byte *>(view.data);
  if (tensor.batchDim == kNoBatchDim || !rows)
    return copy({to, view.device, buffer.size()}, {buffer.data(), device, buffer.size()},
                buffer.size(), 1, on);
  const auto [blocks, rowBytes] = rowLayout(tensor);
  return copy({to + rowBytes * rows->begin, view.device, rowBytes * rows->total},
              {buffer.data(), device, rowBytes * tensor.sizes[tensor.batchDim]},
              rowBytes * rows->count, blocks, on);
}

bool Context::Impl::findWanted(const BucketCall &call) const {
  const auto &[bound, bucket, rows, inputs, outputs] = call;
  bound.wanted = bound.patch->own();
  const auto find = [&](const IoTensor &tensor, const TensorView &view, std::byte *&wanted) {
    if (staging && staging->has(view))
      return; // The inputs of the next run come to the same place.
    if (std::byte *const address = addressInPlace(tensor, rows, view))
      wanted = address;
  };
  for (size_t i = 0; i < inputs.size(); ++i)
    find(bucket.inputs[i], inputs[i], bound.wanted[i]);
  for (size_t i = 0; i < outputs.size(); ++i)
    find(bucket.outputs[i], outputs[i], bound.wanted[inputs.size() + i]);
  return bound.wanted != bound.patch->own();
}

Status Context::Impl::copyInputs(const BucketCall &call, const IoAddresses &at, cudaStream_t on) {
  for (size_t i = 0; i < call.inputs.size(); ++i)
    if (at.empty() || at[i] == call.bound.memory.inputs[i].data())
      if (Status copied = copyIn(call, i, on); !copied.isOk())
        return copied.withContext("input '" + call.bucket.inputs[i].name + "'");
  return staging ? staging->end(on) : Status::ok();
}

Result<bool> Context::Impl::enqueueChecks(const BucketCall &call, const IoAddresses &at,
                                          cudaStream_t on) {
  bool any = false;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const IoTensor &input = call.bucket.inputs[i];
    if (call.inputs[i].device != DeviceKind::Cuda || input.indexBounds.empty())
      continue;
    const std::byte *const data = at.empty() ? call.bound.memory.inputs[i].data() : at[i];
    CGC_TRY(checks.enqueue(input, data, call.rows, on));
    any = true;
  }
  return any;
}

Status Context::Impl::copyOutputs(const BucketCall &call, const IoAddresses &at, cudaStream_t on) {
  for (size_t i = 0; i < call.outputs.size(); ++i)
    if (at.empty() || at[call.inputs.size() + i] == call.bound.memory.outputs[i].data())
      if (Status copied = copyOut(call, i, on); !copied.isOk())
        return copied.withContext("output '" + call.bucket.outputs[i].name + "'");
  return Status::ok();
}

} // namespace cgc
