// TensorGroups: launches of kernels that take groups of f32 tensors (tensorGroups() in
// kernel_table.h): how CTAs share the elements, and the check.
#pragma once

#include "runtime/kernels/kernel_table.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace cgc {

inline constexpr uint32_t kGroupThreads = 256;
/// A tensor is divided into chunks of this many elements, the last one shorter. The chunks of all
/// groups have consecutive numbers; CTA b computes the chunks b, b + grid, and so on.
inline constexpr uint64_t kGroupChunk = 4096;
/// The CTAs that an SM runs at a time: the launch bounds keep registers for them.
inline constexpr uint32_t kGroupBlocksPerMultiprocessor = 6;

constexpr uint64_t groupChunks(uint64_t elements) {
  return elements / kGroupChunk + (elements % kGroupChunk != 0);
}

/// The grid for tensors of `chunks` chunks together.
constexpr uint64_t groupBlocks(uint64_t chunks, int64_t multiprocessors) {
  return std::min(chunks, kGroupBlocksPerMultiprocessor * uint64_t(multiprocessors));
}

/// The tensors of a row of kernels.def: those before the first group, and those of a group.
struct GroupShape {
  size_t sharedReads, reads, writes;
  bool hasCopy = false; ///< The last write is a 16-bit copy of the first, or absent in all groups.
};

/// The groups of a checked launch.
struct TensorGroups {
  struct Group {
    uint64_t elements; ///< Of each tensor; at least 1.
    bool vectors;      ///< Whether each tensor begins at a multiple of four elements.
  };
  std::vector<Group> groups;
  uint64_t chunks = 0;            ///< Of all groups; at most 2^31 - 1.
  std::optional<DType> copy = {}; ///< F16 or BF16, of the 16-bit copies; none: these are absent.
};

/// Checks the groups and the launch shape: each tensor dense and of f32 but for the copy, those of
/// a group of equal numbers of elements. Without `hasLast` the last read and the last write of f32
/// of each group are absent.
Result<TensorGroups> checkTensorGroups(const LaunchView &launch, const GroupShape &shape,
                                       bool hasLast = true);

/// Checks the shared reads of an optimizer: lr, step, scale? and skip?.
Status checkOptimizerReads(const LaunchView &launch);

/// Checks the operand `skip?`.
Status checkSkip(const OperandView &skip);

/// The shared reads of an optimizer.
enum OptimizerRead : size_t { kLr, kStep, kScale, kSkip, kOptimizerReads };

} // namespace cgc
