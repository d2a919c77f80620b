// PlanMemory: sums over weights and buckets.
#include "runtime/plan/plan_memory.h"

#include "runtime/base/checked.h"

#include <algorithm>

namespace cgc {

// validate() bounds the weights, the largest arena, and the sum of inputs and outputs, so only the
// sum of all arenas can overflow.

std::vector<bool> weightsThatRecordsRead(const PlanData &plan) {
  std::vector<bool> reads(plan.weights.size(), true);
  for (const State &state : plan.states)
    if (state.initial != kBeginsAsZeros)
      reads[state.initial] = false;
  if (!plan.states.empty())
    for (const Entry &entry : plan.entries)
      for (const Bucket &bucket : entry.buckets)
        for (const TensorRef &tensor : bucket.tensors)
          if (tensor.slot.buffer == BufferKind::Weight)
            reads[tensor.slot.index] = true;
  return reads;
}

std::vector<uint64_t> weightOffsets(const PlanData &plan) {
  const std::vector<bool> reads = weightsThatRecordsRead(plan);
  std::vector<uint64_t> offsets;
  uint64_t end = 0;
  for (size_t i = 0; i < plan.weights.size(); ++i) {
    const Weight &weight = plan.weights[i];
    const uint64_t bytes = reads[i] ? *tensorBytes(weight.dtype, weight.sizes) : 0;
    offsets.push_back(*alignUp(end, placementAlignment(bytes)));
    end = offsets.back() + bytes;
  }
  offsets.push_back(end);
  return offsets;
}

std::vector<uint64_t> stateOffsets(const PlanData &plan) {
  std::vector<uint64_t> offsets;
  uint64_t end = 0;
  for (const State &state : plan.states) {
    const uint64_t bytes = *tensorBytes(state.dtype, state.sizes);
    offsets.push_back(*alignUp(end, placementAlignment(bytes)));
    end = offsets.back() + bytes;
  }
  offsets.push_back(end);
  return offsets;
}

uint64_t ioBytes(const Bucket &bucket) {
  uint64_t bytes = 0;
  for (const auto *list : {&bucket.inputs, &bucket.outputs})
    for (const IoTensor &tensor : *list)
      bytes += *tensorBytes(tensor.dtype, tensor.sizes);
  return bytes;
}

PlanMemory planMemory(const PlanData &plan, bool separateBuffers) {
  PlanMemory memory;
  memory.weights = weightOffsets(plan).back();
  memory.states = stateOffsets(plan).back();
  for (const Entry &entry : plan.entries)
    for (const Bucket &bucket : entry.buckets) {
      memory.arena = separateBuffers
                         ? checkedAdd(memory.arena, bucket.arenaBytes).value_or(UINT64_MAX / 2)
                         : std::max(memory.arena, bucket.arenaBytes);
      memory.io += ioBytes(bucket);
    }
  return memory;
}

} // namespace cgc
