// AccessCheck: work, order and overlap of what records read and write.
#include "runtime/plan/validate_access.h"

#include "runtime/base/checked.h"
#include "runtime/plan/gemm_call.h"
#include "runtime/plan/invalid.h"
#include "runtime/plan/layout.h"

#include <algorithm>

namespace cgc {
namespace {

// A broadcast tensor has more elements than bytes. A record may read a tensor of this many elements
// for each byte that the record's largest tensor spans. kAlwaysAllowedElements are allowed in any
// case.
constexpr uint64_t kElementsPerByte = 1 << 10, kAlwaysAllowedElements = 1 << 20;

/// Whether elements of the tensor may share memory. They cannot if the stride of each dimension
/// is at least the span of all dimensions with smaller strides.
bool mayOverlap(const TensorRef &tensor) {
  if (std::ranges::find(tensor.sizes, 0) != tensor.sizes.end())
    return false;
  std::vector<std::pair<int64_t, int64_t>> dimensions; // (stride, size)
  for (size_t d = 0; d < tensor.sizes.size(); ++d)
    if (tensor.sizes[d] > 1)
      dimensions.emplace_back(tensor.strides[d], tensor.sizes[d]);
  std::ranges::sort(dimensions);
  int64_t span = 1; // In elements; tensorExtent() has checked that it does not overflow.
  for (const auto &[stride, size] : dimensions) {
    if (stride < span)
      return true;
    span += (size - 1) * stride;
  }
  return false;
}

} // namespace

Status AccessCheck::add(const LaunchRecord &record) {
  CGC_TRY(checkWork(record));
  return checkOrder(record);
}

bool AccessCheck::hasValue(TensorId id) {
  const TensorRef &accessed = tensor(id);
  ++steps_; // The first run of a read does not count against the limit.
  const BufferKind buffer = accessed.slot.buffer;
  return buffer == BufferKind::Weight || buffer == BufferKind::Input ||
         buffer == BufferKind::State ||
         written_[{buffer, accessed.slot.index}].covers(accessed, steps_);
}

bool AccessCheck::writesOutput(uint32_t index) {
  const IoTensor &output = bucket_.outputs[index];
  return written_[{BufferKind::Output, index}].coversFirst(
      *tensorBytes(output.dtype, output.sizes));
}

/// Bounds the work of a record by the bytes that its tensors span.
Status AccessCheck::checkWork(const LaunchRecord &record) const {
  const std::vector<TensorId> reads = recordReads(record), writes = recordWrites(record);
  uint64_t span = 0;
  for (const auto *ids : {&reads, &writes})
    for (TensorId id : *ids)
      span = std::max(span, *tensorExtent(tensor(id)));
  const uint64_t most = std::max(kAlwaysAllowedElements, kElementsPerByte * span);
  for (TensorId id : reads)
    if (const TensorRef &t = tensor(id); *tensorBytes(t.dtype, t.sizes) / dtypeSize(t.dtype) > most)
      return invalidFile("it reads all elements of tensor " + std::to_string(uint32_t(id)) +
                         ", more than " + std::to_string(most) + ": its largest tensor spans " +
                         std::to_string(span) + " bytes");
  for (TensorId id : writes)
    if (mayOverlap(tensor(id)))
      return invalidFile("elements of tensor " + std::to_string(uint32_t(id)) +
                         ", which it writes, overlap");
  return Status::ok();
}

Status AccessCheck::checkOrder(const LaunchRecord &record) {
  for (TensorId id : recordReads(record)) {
    if (!hasValue(id))
      return invalidFile(
          "it reads tensor " + std::to_string(uint32_t(id)) +
          ", which no earlier record has written" +
          (steps_ > 0 ? "" : ", as far as can be seen: it was written in too many parts"));
  }
  // How much of its workspace cuBLASLt writes is unknown, so the workspace does not count as
  // written.
  const auto *call = std::get_if<LibraryCall>(&record.op);
  const bool hasWorkspace = call && isGemm(*call);
  for (TensorId id : recordWrites(record)) {
    const TensorRef &accessed = tensor(id);
    if (accessed.slot.buffer == BufferKind::Weight || accessed.slot.buffer == BufferKind::Input)
      return invalidFile("it writes to a weight or an input");
    if (!hasWorkspace || id == call->writes[0])
      written_[{accessed.slot.buffer, accessed.slot.index}].add(accessed);
  }
  return Status::ok();
}

} // namespace cgc
