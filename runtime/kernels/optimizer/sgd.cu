// sgd_f32: a step of stochastic gradient descent for up to 256 parameters.
#include "runtime/kernels/optimizer/sgd.h"

#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/optimizer/tensor_groups.cuh"

namespace cgc {
namespace {

using namespace device;

enum Tensor {
  kParameter,
  kGradient,
  kMomentum,
  kNewParameter,
  kNewMomentum,
  kCopy, ///< Of 16 bits, or absent.
  kTensors
};

struct SgdParameters {
  OptimizerOperands operands;
  bool moves; ///< Whether groups have momenta.
  float momentum;
  float share; ///< Of the gradient in the momentum: 1 - dampening.
  float weightDecay;
  bool isNesterov;
  GroupCopies copies;
  GroupTable<kTensors> groups;
};

__global__ void __launch_bounds__(kGroupThreads, kGroupBlocksPerMultiprocessor)
    sgd(const __grid_constant__ SgdParameters p) {
  griddepLaunchDependents();
  griddepWait();
  const OptimizerOperands &o = p.operands;
  const float lr = *o.lr, scale = o.scale ? *o.scale : 1.0f;
  const bool isFirst = *o.step == 1, skips = o.skip && *o.skip, moves = p.moves;
  forChunks(p.groups, [&](const GroupChunk &chunk) {
    const ChunkTensors<kCopy> at(p.groups, chunk);
    void *const copy = p.groups.tensors[kCopy][chunk.group];
    forElements(chunk, [&](auto width, uint32_t i) {
      constexpr int kWidth = decltype(width)::value;
      float parameter[kWidth], gradient[kWidth], momentum[kWidth] = {};
      loadFloats(at[kParameter] + i, parameter);
      if (skips) {
        keep<kWidth>(at[kParameter] + i, at[kNewParameter] + i);
        if (moves)
          keep<kWidth>(at[kMomentum] + i, at[kNewMomentum] + i);
        storeCopy(p.copies, copy, chunk.begin + i, parameter);
        return;
      }
      loadFloats(at[kGradient] + i, gradient);
      if (moves && !isFirst)
        loadFloats(at[kMomentum] + i, momentum);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        float g = gradient[k] * scale;
        if (p.weightDecay != 0)
          g += p.weightDecay * parameter[k];
        if (moves) {
          momentum[k] = isFirst ? g : p.momentum * momentum[k] + p.share * g;
          g = p.isNesterov ? g + p.momentum * momentum[k] : momentum[k];
        }
        parameter[k] -= lr * g;
      }
      storeFloats(at[kNewParameter] + i, parameter);
      if (moves)
        storeFloats(at[kNewMomentum] + i, momentum);
      storeCopy(p.copies, copy, chunk.begin + i, parameter);
    });
  });
}

Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  const SgdNumbers numbers = SgdNumbers::of(launch.ints, launch.floats);
  const TensorGroups groups = *checkSgd(launch);
  return KernelParameters(
      SgdParameters{optimizerOperands(at), numbers.momentum != 0, float(numbers.momentum),
                    float(1 - numbers.dampening), float(numbers.weightDecay), numbers.isNesterov,
                    groupCopies(groups),
                    groupTable<kSgdShape.reads, kSgdShape.writes>(
                        groups, at.reads.subspan(kSgdShape.sharedReads), at.writes)});
}

} // namespace

CGC_KERNEL_OF(sgd_f32, sgd, bind)

} // namespace cgc
