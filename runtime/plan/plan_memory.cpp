// PlanMemory: sums over weights and buckets.
#include "runtime/plan/plan_memory.h"

#include "runtime/base/checked.h"
#include "runtime/plan/gemm_call.h"

#include <algorithm>
#include <array>
#include <numeric>

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
    if (!reads[i]) {
      offsets.push_back(end);
      continue;
    }
    const uint64_t bytes = *tensorBytes(weight.dtype, weight.sizes);
    offsets.push_back(*alignUp(end, placementAlignment(bytes)));
    end = offsets.back() + bytes;
  }
  offsets.push_back(end);
  return offsets;
}

std::vector<uint64_t> stateOffsets(const PlanData &plan, const std::vector<bool> &held) {
  std::vector<uint64_t> offsets;
  uint64_t end = 0;
  for (size_t i = 0; i < plan.states.size(); ++i) {
    if (!held.empty() && !held[i]) {
      offsets.push_back(end);
      continue;
    }
    const State &state = plan.states[i];
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

uint64_t workspaceBytes(const Bucket &bucket) {
  uint64_t most = 0;
  std::array<uint64_t, kMaxBranches + 1> largest{}; // Of each branch, since branch 0 ran.
  for (const LaunchRecord &record : bucket.records) {
    if (record.branch == 0)
      largest.fill(0);
    const auto *const call = std::get_if<LibraryCall>(&record.op);
    if (!call || !isGemm(*call))
      continue;
    const Result<GemmCall> gemm = gemmCall(*call, bucket.tensors);
    if (!gemm.isOk())
      continue;
    const TensorRef &workspace = bucket.tensors[uint32_t(gemm->workspace)];
    uint64_t &branch = largest[record.branch];
    branch = std::max(branch, *tensorBytes(workspace.dtype, workspace.sizes));
    most = std::max(most, std::accumulate(largest.begin(), largest.end(), uint64_t(0)));
    largest[0] = 0; // Over before the next record begins.
  }
  return most;
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
      memory.workspace = separateBuffers ? memory.workspace + workspaceBytes(bucket)
                                         : std::max(memory.workspace, workspaceBytes(bucket));
    }
  return memory;
}

} // namespace cgc
