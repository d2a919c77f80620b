// adam_f32: a step of Adam or AdamW for up to 256 parameters.
#include "runtime/kernels/optimizer/adam.h"

#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/optimizer/tensor_groups.cuh"

namespace cgc {
namespace {

using namespace device;

enum Tensor {
  kParameter,
  kGradient,
  kMean,
  kSquare,
  kNewParameter,
  kNewMean,
  kNewSquare,
  kCopy, ///< Of 16 bits, or absent.
  kTensors
};

struct AdamParameters {
  OptimizerOperands operands;
  double beta1, beta2, weightDecay;
  float eps;
  bool isDecoupled;
  GroupCopies copies;
  GroupTable<kTensors> groups;
};

/// What is equal for all elements of a step.
struct StepNumbers {
  float scale;      ///< Of gradients.
  float shrink;     ///< Factor of the parameter: 1 - lr weightDecay if decoupled, else 1.
  float decay;      ///< What the gradient gets of the parameter: 0 if decoupled.
  float stepSize;   ///< lr / (1 - beta1^step).
  float squareRoot; ///< sqrt(1 - beta2^step).
  bool skips;
};

__device__ StepNumbers stepNumbers(const AdamParameters &p) {
  const OptimizerOperands &o = p.operands;
  const double lr = *o.lr, step = double(*o.step);
  return {o.scale ? *o.scale : 1.0f,
          p.isDecoupled ? float(1 - lr * p.weightDecay) : 1.0f,
          p.isDecoupled ? 0.0f : float(p.weightDecay),
          float(lr / (1 - pow(p.beta1, step))),
          float(sqrt(1 - pow(p.beta2, step))),
          o.skip && *o.skip};
}

__global__ void __launch_bounds__(kGroupThreads, kGroupBlocksPerMultiprocessor)
    adam(const __grid_constant__ AdamParameters p) {
  griddepLaunchDependents();
  griddepWait();
  // The powers are in f64: one thread computes them for all chunks of the CTA.
  __shared__ StepNumbers numbers;
  if (threadIdx.x == 0)
    numbers = stepNumbers(p);
  __syncthreads();
  const StepNumbers n = numbers;
  const float weight1 = float(1 - p.beta1), rest1 = float(p.beta1), beta2 = float(p.beta2),
              weight2 = float(1 - p.beta2);
  forChunks(p.groups, [&](const GroupChunk &chunk) {
    const ChunkTensors<kCopy> at(p.groups, chunk);
    void *const copy = p.groups.tensors[kCopy][chunk.group];
    forElements(chunk, [&](auto width, uint32_t i) {
      constexpr int kWidth = decltype(width)::value;
      float parameter[kWidth], gradient[kWidth], mean[kWidth], square[kWidth];
      loadFloats(at[kParameter] + i, parameter);
      if (n.skips) {
        keep<kWidth>(at[kParameter] + i, at[kNewParameter] + i);
        keep<kWidth>(at[kMean] + i, at[kNewMean] + i);
        keep<kWidth>(at[kSquare] + i, at[kNewSquare] + i);
        storeCopy(p.copies, copy, chunk.begin + i, parameter);
        return;
      }
      loadFloats(at[kGradient] + i, gradient);
      loadFloats(at[kMean] + i, mean);
      loadFloats(at[kSquare] + i, square);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        float g = gradient[k] * n.scale;
        if (n.decay != 0)
          g += n.decay * parameter[k];
        mean[k] = lerp(mean[k], g, weight1, rest1);
        square[k] = square[k] * beta2 + weight2 * g * g;
        const float root = sqrtf(square[k]) / n.squareRoot + p.eps;
        parameter[k] = parameter[k] * n.shrink - n.stepSize * mean[k] / root;
      }
      storeFloats(at[kNewParameter] + i, parameter);
      storeFloats(at[kNewMean] + i, mean);
      storeFloats(at[kNewSquare] + i, square);
      storeCopy(p.copies, copy, chunk.begin + i, parameter);
    });
  });
}

Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  const AdamNumbers numbers = AdamNumbers::of(launch.ints, launch.floats);
  const TensorGroups groups = *checkAdam(launch);
  return KernelParameters(
      AdamParameters{optimizerOperands(at), numbers.beta1, numbers.beta2, numbers.weightDecay,
                     float(numbers.eps), numbers.isDecoupled, groupCopies(groups),
                     groupTable<kAdamShape.reads, kAdamShape.writes>(
                         groups, at.reads.subspan(kAdamShape.sharedReads), at.writes)});
}

} // namespace

CGC_KERNEL_OF(adam_f32, adam, bind)

} // namespace cgc
