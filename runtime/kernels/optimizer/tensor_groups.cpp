// Checks the groups of tensors of a launch.
#include "runtime/kernels/optimizer/tensor_groups.h"

#include "runtime/kernels/kernel_checks.h"

namespace cgc {
namespace {

/// Whether the tensors of a group, of which the last is absent without `hasLast`, are dense f32 of
/// so many elements. Clears `vectors` if one is not aligned.
bool areOf(std::span<const OperandView> tensors, uint64_t elements, bool hasLast, bool &vectors) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const bool isAbsent = !hasLast && i + 1 == tensors.size();
    if (isAbsent ? tensors[i].isPresent() : !isDenseOf(tensors[i], DType::F32, elements))
      return false;
    vectors &= isAligned(tensors[i], 16);
  }
  return true;
}

/// Whether the copy of a group is absent, or dense and of 16 bits.
bool isCopy(const OperandView &tensor, uint64_t elements) {
  return !tensor.isPresent() || isDenseOf(tensor, DType::F16, elements) ||
         isDenseOf(tensor, DType::BF16, elements);
}

} // namespace

Result<TensorGroups> checkTensorGroups(const LaunchView &launch, const GroupShape &shape,
                                       bool hasLast) {
  TensorGroups result;
  const size_t count = (launch.reads.size() - shape.sharedReads) / shape.reads;
  const size_t sharedWrites = launch.writes.size() - count * shape.writes;
  for (size_t group = 0; group < count; ++group) {
    const auto reads = launch.reads.subspan(shape.sharedReads + group * shape.reads, shape.reads);
    const auto writes = launch.writes.subspan(sharedWrites + group * shape.writes, shape.writes);
    const uint64_t elements = elementsOf(reads[0]);
    bool vectors = true;
    if (elements == 0 || !areOf(reads, elements, hasLast, vectors) ||
        !areOf(writes.first(shape.writes - shape.hasCopy), elements, hasLast, vectors))
      return refuseLaunch("the tensors of group " + std::to_string(group) +
                          " have to be dense f32, each with as many elements, and not empty");
    if (shape.hasCopy) {
      const OperandView &copy = writes.back();
      const auto dtype = copy.isPresent() ? std::optional(copy.dtype) : std::nullopt;
      if (group == 0)
        result.copy = dtype;
      if (dtype != result.copy || !isCopy(copy, elements))
        return refuseLaunch("the copies of all groups have to be absent, or all dense f16 or bf16 "
                            "of their parameters' numbers of elements");
      vectors &= isAligned(copy, 8);
    }
    result.groups.push_back({elements, vectors});
    result.chunks += groupChunks(elements);
  }
  // No sum of 256 numbers of chunks overflows: a tensor has less than 2^63 bytes.
  if (result.chunks > INT32_MAX || launch.grid[0] > result.chunks ||
      !hasShape(launch, launch.grid[0], kGroupThreads))
    return refuseLaunch("the grid has to be {1 to the number of chunks, 1, 1}, the block "
                        "{256, 1, 1}, without shared memory");
  return result;
}

Status checkOptimizerReads(const LaunchView &launch) {
  if (!isDenseOf(launch.reads[kLr], DType::F32, 1) ||
      !isAbsentOrDenseOf(launch.reads[kScale], DType::F32, 1))
    return refuseLaunch("lr, and the scale if there is one, have to be one f32");
  if (!isDenseOf(launch.reads[kStep], DType::I64, 1))
    return refuseLaunch("the step has to be one i64");
  return checkSkip(launch.reads[kSkip]);
}

Status checkSkip(const OperandView &skip) {
  return isAbsentOrDenseOf(skip, DType::Bool, 1) ? Status::ok()
                                                 : refuseLaunch("skip has to be one bool");
}

} // namespace cgc
