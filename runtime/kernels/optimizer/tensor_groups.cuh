// Device half of kernels that take groups of tensors: the table of a launch's tensors, and the loop
// over chunks.
#pragma once

#include "runtime/kernels/device.cuh"
#include "runtime/kernels/device/device_kernels.h"
#include "runtime/kernels/optimizer/tensor_groups.h"

namespace cgc::device {

/// The groups of a launch, with `Tensors` tensors each.
template <int Tensors> struct GroupTable {
  uint32_t count;
  uint32_t chunksBefore[kMaxTensorGroups + 1]; ///< Of the groups before each; behind them, of all.
  uint32_t vectors[kMaxTensorGroups / 32];     ///< TensorGroups::Group::vectors, as bits.
  uint64_t elements[kMaxTensorGroups];
  float *tensors[Tensors][kMaxTensorGroups]; ///< A copy is of 16 bits.
};

/// The table of checked groups. `reads` and `writes` are their addresses without shared ones; the
/// tensors of a group are its reads, then its writes.
template <int Reads, int Writes>
GroupTable<Reads + Writes> groupTable(const TensorGroups &groups, std::span<void *const> reads,
                                      std::span<void *const> writes) {
  GroupTable<Reads + Writes> table = {};
  table.count = uint32_t(groups.groups.size());
  for (uint32_t g = 0; g < table.count; ++g) {
    const auto [elements, vectors] = groups.groups[g];
    table.elements[g] = elements;
    table.vectors[g / 32] |= uint32_t(vectors) << g % 32;
    table.chunksBefore[g + 1] = table.chunksBefore[g] + uint32_t(groupChunks(elements));
    for (int i = 0; i < Reads; ++i)
      table.tensors[i][g] = static_cast<float *>(reads[g * Reads + i]);
    for (int i = 0; i < Writes; ++i)
      table.tensors[Reads + i][g] = static_cast<float *>(writes[g * Writes + i]);
  }
  return table;
}

/// A chunk of a group: elements `begin` to `begin + count - 1` of its tensors.
struct GroupChunk {
  uint32_t number; ///< Among the chunks of all groups.
  uint32_t group;
  uint64_t begin;
  uint32_t count;
  bool vectors; ///< Whether the chunk begins at a multiple of 16 bytes in each tensor.
};

/// Where a chunk begins in each of the first tensors of its group.
template <int Tensors> struct ChunkTensors {
  float *tensors[Tensors];

  template <int All>
  __device__ ChunkTensors(const GroupTable<All> &table, const GroupChunk &chunk) {
#pragma unroll
    for (int i = 0; i < Tensors; ++i)
      tensors[i] = table.tensors[i][chunk.group] + chunk.begin;
  }
  __device__ float *operator[](int i) const { return tensors[i]; }
};

/// Calls `f(chunk)` for each chunk of this CTA.
template <int Tensors, class F> __device__ void forChunks(const GroupTable<Tensors> &table, F f) {
  const uint32_t chunks = table.chunksBefore[table.count];
  for (uint32_t number = blockIdx.x; number < chunks; number += gridDim.x) {
    // The last group that begins at this chunk or before it.
    uint32_t group = 0;
    for (uint32_t step = kMaxTensorGroups / 2; step > 0; step /= 2)
      if (group + step < table.count && table.chunksBefore[group + step] <= number)
        group += step;
    const uint64_t begin = uint64_t(number - table.chunksBefore[group]) * kGroupChunk;
    const uint64_t left = table.elements[group] - begin;
    f(GroupChunk{number, group, begin, uint32_t(left < kGroupChunk ? left : kGroupChunk),
                 (table.vectors[group / 32] >> group % 32 & 1) != 0});
  }
}

/// Calls `f(Width<N>, i)` for the elements of a chunk that this thread computes: N elements from
/// `i` on, 4 where there are as many and the chunk has vectors, else 1.
template <int N> struct Width {
  static constexpr int value = N;
};
template <class F> __device__ void forElements(const GroupChunk &chunk, F f) {
  uint32_t i = 0;
  if (chunk.vectors) {
    for (i = threadIdx.x * 4; i + 4 <= chunk.count; i += kGroupThreads * 4)
      f(Width<4>(), i);
    i = chunk.count / 4 * 4;
  }
  for (i += threadIdx.x; i < chunk.count; i += kGroupThreads)
    f(Width<1>(), i);
}

/// What an optimizer reads for all groups. Absent tensors are null.
struct OptimizerOperands {
  const float *lr;
  const int64_t *step;
  const float *scale;
  const bool *skip;
};
inline OptimizerOperands optimizerOperands(const LaunchAddresses &at) {
  return {static_cast<const float *>(at.reads[kLr]), static_cast<const int64_t *>(at.reads[kStep]),
          static_cast<const float *>(at.reads[kScale]), static_cast<const bool *>(at.reads[kSkip])};
}

/// at::lerp: the formula for the end that is nearer. `rest` is 1 - weight.
inline __device__ float lerp(float from, float to, float weight, float rest) {
  return weight < 0.5f ? from + weight * (to - from) : to - (to - from) * rest;
}

/// The dtype of the 16-bit copies of a launch's parameters.
enum class GroupCopies { None, F16, BF16 };
inline GroupCopies groupCopies(const TensorGroups &groups) {
  return !groups.copy                 ? GroupCopies::None
         : *groups.copy == DType::F16 ? GroupCopies::F16
                                      : GroupCopies::BF16;
}

/// Stores elements `i` and behind it of a copy, if there are copies.
template <int Width>
__device__ void storeCopy(GroupCopies copies, void *copy, uint64_t i,
                          const float (&values)[Width]) {
  if (copies == GroupCopies::F16)
    storeFloats(static_cast<__half *>(copy) + i, values);
  else if (copies == GroupCopies::BF16)
    storeFloats(static_cast<__nv_bfloat16 *>(copy) + i, values);
}

/// Copies what a skipped step has to write elsewhere than it reads.
template <int Width> __device__ void keep(const float *from, float *to) {
  if (from != to)
    *reinterpret_cast<Pack<float, Width> *>(to) =
        *reinterpret_cast<const Pack<float, Width> *>(from);
}

} // namespace cgc::device
