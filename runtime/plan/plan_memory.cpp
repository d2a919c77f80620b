// PlanMemory: sums over weights and buckets.
#include "runtime/plan/plan_memory.h"

#include "runtime/base/checked.h"

#include <algorithm>

namespace cgc {

// validate() bounds the weights, the largest arena, and the sum of inputs and outputs, so only the
// sum of all arenas can overflow.

std::vector<uint64_t> weightOffsets(const PlanData &plan) {
  std::vector<uint64_t> offsets;
  uint64_t end = 0;
  for (const Weight &weight : plan.weights) {
    const uint64_t bytes = *tensorBytes(weight.dtype, weight.sizes);
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
