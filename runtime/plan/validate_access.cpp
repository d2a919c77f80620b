// AccessCheck: work, order and overlap of what records read and write.
#include "runtime/plan/validate_access.h"

#include "runtime/base/checked.h"
#include "runtime/plan/collective_call.h"
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

bool isBroadcast(const LibraryCall &call) {
  return isCollective(call) && call.function == collectiveName(CollectiveKind::Broadcast);
}

} // namespace

Status AccessCheck::add(const LaunchRecord &record) {
  CGC_TRY(checkWork(record));
  return checkOrder(record);
}

Result<AccessCheck::Shard> AccessCheck::shardOf(const LaunchRecord &record) const {
  const auto *const call = std::get_if<LibraryCall>(&record.op);
  const bool isCommon = call && isCollective(*call);
  Shard shard;
  for (const auto &ids : {recordReads(record), recordWrites(record)})
    for (const TensorId id : ids) {
      const Slot &slot = tensor(id).slot;
      if (slot.buffer != BufferKind::State || !plan_.states[slot.index].shard)
        continue;
      const State &state = plan_.states[slot.index];
      if (isCommon)
        return invalidFile("a collective uses state '" + state.name + "' of shard " +
                           std::to_string(*state.shard) + ", which one rank holds");
      if (shard && shard != state.shard)
        return invalidFile("it uses states of the shards " + std::to_string(*shard) + " and " +
                           std::to_string(*state.shard));
      shard = state.shard;
    }
  if (!isCommon)
    return shard;
  CGC_ASSIGN_OR_RETURN(const CollectiveCall collective, collectiveCall(*call, bucket_.tensors));
  if (collective.shard && *collective.shard >= plan_.states.size())
    return invalidFile("there is no shard " + std::to_string(*collective.shard));
  return collective.shard;
}

bool AccessCheck::hasValue(TensorId id) {
  return hasValue(id, std::nullopt);
}

bool AccessCheck::hasValue(TensorId id, Shard shard) {
  const TensorRef &accessed = tensor(id);
  ++steps_; // The first run of a read does not count against the limit.
  const auto [buffer, index, offset] = accessed.slot;
  return buffer == BufferKind::Weight || buffer == BufferKind::Input ||
         buffer == BufferKind::State || written_[{buffer, index}].covers(accessed, steps_) ||
         (shard && writtenByShards_[{buffer, index}][*shard].covers(accessed, steps_));
}

Status AccessCheck::checkSent() const {
  if (unsent_.empty())
    return Status::ok();
  const auto &[state, shard] = *unsent_.begin();
  return invalidFile("records of shard " + std::to_string(shard) + " write state '" +
                     plan_.states[state].name + "', and no broadcast sends it to the other ranks");
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

void AccessCheck::addOfShard(const TensorRef &accessed, uint32_t shard) {
  const Buffer buffer = {accessed.slot.buffer, accessed.slot.index};
  const uint64_t begin = accessed.slot.offset, end = begin + *tensorExtent(accessed);
  written_[buffer].remove(begin, end, steps_);
  for (auto &[other, written] : writtenByShards_[buffer])
    if (other != shard)
      written.remove(begin, end, steps_);
  writtenByShards_[buffer][shard].add(accessed);
}

Status AccessCheck::checkOrder(const LaunchRecord &record) {
  CGC_ASSIGN_OR_RETURN(const Shard shard, shardOf(record));
  const auto *call = std::get_if<LibraryCall>(&record.op);
  const bool isCommon = call && isCollective(*call), isSent = call && isBroadcast(*call);
  // All ranks have what is reduced, one of them what is sent.
  const Shard readShard = isCommon && !isSent ? std::nullopt : shard;
  for (const bool reads : {true, false})
    for (const TensorId id : reads ? recordReads(record) : recordWrites(record))
      if (const auto [buffer, index, offset] = tensor(id).slot; buffer == BufferKind::State)
        if (const auto found = unsent_.find(index);
            found != unsent_.end() && found->second != (reads ? readShard : shard))
          return invalidFile("it uses state '" + plan_.states[index].name +
                             "', whose value only the rank with shard " +
                             std::to_string(found->second) + " has");
  for (TensorId id : recordReads(record)) {
    if (!hasValue(id, readShard))
      return invalidFile(
          "it reads tensor " + std::to_string(uint32_t(id)) +
          ", which no earlier record has written" +
          (steps_ > 0 ? "" : ", as far as can be seen: it was written in too many parts"));
  }
  // How much of its workspace cuBLASLt writes is unknown, so the workspace does not count as
  // written.
  const bool hasWorkspace = call && isGemm(*call);
  for (TensorId id : recordWrites(record)) {
    const TensorRef &accessed = tensor(id);
    if (accessed.slot.buffer == BufferKind::Weight || accessed.slot.buffer == BufferKind::Input)
      return invalidFile("it writes to a weight or an input");
    const auto [buffer, index, offset] = accessed.slot;
    if (!hasWorkspace || id == call->writes[0])
      shard && !isSent ? addOfShard(accessed, *shard) : written_[{buffer, index}].add(accessed);
    if (buffer != BufferKind::State || !shard || plan_.states[index].shard)
      continue;
    const State &state = plan_.states[index];
    if (!isSent)
      unsent_[index] = *shard;
    else if (*tensorExtent(accessed) == *tensorBytes(state.dtype, state.sizes))
      unsent_.erase(index);
  }
  return Status::ok();
}

} // namespace cgc
