// ema_f32: moving averages of up to 256 parameters.
#include "runtime/kernels/optimizer/ema.h"

#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/optimizer/tensor_groups.cuh"

namespace cgc {
namespace {

using namespace device;

enum Tensor { kAverage, kParameter, kNewAverage, kTensors };

struct EmaParameters {
  const bool *skip;
  float weight, rest; ///< 1 - decay, and decay.
  GroupTable<kTensors> groups;
};

__global__ void __launch_bounds__(kGroupThreads, kGroupBlocksPerMultiprocessor)
    ema(const __grid_constant__ EmaParameters p) {
  griddepLaunchDependents();
  griddepWait();
  const bool skips = p.skip && *p.skip;
  forChunks(p.groups, [&](const GroupChunk &chunk) {
    const ChunkTensors<kTensors> at(p.groups, chunk);
    forElements(chunk, [&](auto width, uint32_t i) {
      constexpr int kWidth = decltype(width)::value;
      if (skips) {
        keep<kWidth>(at[kAverage] + i, at[kNewAverage] + i);
        return;
      }
      float average[kWidth], parameter[kWidth];
      loadFloats(at[kAverage] + i, average);
      loadFloats(at[kParameter] + i, parameter);
#pragma unroll
      for (int k = 0; k < kWidth; ++k)
        average[k] = lerp(average[k], parameter[k], p.weight, p.rest);
      storeFloats(at[kNewAverage] + i, average);
    });
  });
}

Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  const double decay = launch.floats[0];
  return KernelParameters(
      EmaParameters{static_cast<const bool *>(at.reads[0]), float(1 - decay), float(decay),
                    groupTable<kEmaShape.reads, kEmaShape.writes>(
                        *checkEma(launch), at.reads.subspan(kEmaShape.sharedReads), at.writes)});
}

} // namespace

CGC_KERNEL_OF(ema_f32, ema, bind)

} // namespace cgc
