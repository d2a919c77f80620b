// batch_norm_*: batch normalization in training and its gradient. Each is two launches: the first
// reduces splits of channels, the second combines the splits of its channel and computes elements.
#include "runtime/kernels/batch_norm/batch_norm.h"

#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/divider.h"
#include "runtime/kernels/pointwise/activations.cuh"

namespace cgc {
namespace {

using namespace device;

/// The number of some elements, their mean, and the sum of the squares of their deviations from it.
struct Moments {
  float count, mean, squares;
};
/// The moments of both sets of elements (Chan, Golub and LeVeque). Either set may be empty.
__device__ Moments merged(const Moments &a, const Moments &b) {
  const float count = a.count + b.count, share = count > 0 ? b.count / count : 0.0f,
              distance = b.mean - a.mean;
  return {count, a.mean + distance * share,
          a.squares + b.squares + distance * (distance * (a.count * share))};
}

/// The sum of a gradient, and of the gradient times (x - mean).
struct Sums {
  float gradient, product;
};
__device__ Sums merged(const Sums &a, const Sums &b) {
  return {a.gradient + b.gradient, a.product + b.product};
}

/// The part with each of its floats replaced by `f` of it.
template <class Part, class F> __device__ Part mapFloats(Part part, F f) {
  auto *const floats = reinterpret_cast<float *>(&part);
#pragma unroll
  for (int i = 0; i < int(sizeof(Part) / sizeof(float)); ++i)
    floats[i] = f(floats[i]);
  return part;
}

/// The parts of the warp merged, in lane 0. Always in the same order.
template <class Part> __device__ Part warpMerged(Part part) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    part = merged(
        part, mapFloats(part, [&](float v) { return __shfl_down_sync(0xffffffffu, v, offset); }));
  return part;
}

/// The parts of the CTA merged, in thread 0.
template <class Part> __device__ Part blockMerged(Part part) {
  constexpr int kWarps = kBatchNormThreads / 32;
  __shared__ Part parts[kWarps];
  part = warpMerged(part);
  if (threadIdx.x % 32 == 0)
    parts[threadIdx.x / 32] = part;
  __syncthreads();
  return warpMerged(threadIdx.x < kWarps ? parts[threadIdx.x] : Part{});
}

/// The parts of all splits of a channel merged, in every lane of every warp. Each warp of each CTA
/// computes the same.
template <class Part> __device__ Part splitsMerged(const Part *splits, uint32_t count) {
  Part part{};
  for (uint32_t i = threadIdx.x % 32; i < count; i += 32)
    part = merged(part, splits[i]);
  return mapFloats(warpMerged(part), [](float v) { return __shfl_sync(0xffffffffu, v, 0); });
}

/// The layout as CTAs take it.
struct ChannelTable {
  uint32_t channels, plane, elements, splits, splitElements, width;
  Divider planes;

  explicit ChannelTable(const BatchNormLayout &l)
      : channels(l.channels), plane(l.plane), elements(l.elements), splits(l.splits),
        splitElements(l.splitElements), width(l.width), planes(l.plane) {}
};

/// The split of a channel that a CTA has.
struct Slice {
  uint32_t channel, split, begin, end; ///< Elements of the channel.

  __device__ Slice(const ChannelTable &table, uint32_t block)
      : channel(block / table.splits), split(block - channel * table.splits) {
    const uint64_t first = uint64_t(split) * table.splitElements;
    begin = uint32_t(min(first, uint64_t(table.elements)));
    end = uint32_t(min(first + table.splitElements, uint64_t(table.elements)));
  }
};

/// Calls f(width) with the elements of a unit as a constant.
template <class T, class F> __device__ void withWidth(uint32_t width, F f) {
  constexpr int kSize = Vector<T>::kSize;
  if (width == kSize)
    f(std::integral_constant<int, kSize>());
  else if (width == kSize / 2)
    f(std::integral_constant<int, kSize / 2>());
  else
    f(std::integral_constant<int, 1>());
}

/// The units whose loads a thread has in flight at a time.
template <class T, int Width> constexpr int kBatch = Width * sizeof(T) == 16 ? 4 : 8;

/// Calls load(b, offset), then use(b, offset), for the units of a thread, kBatch at a time. `b` is
/// the number of the unit in its batch and a constant once the loops are unrolled; `offset` is
/// that of its first element in the tensor.
template <class T, int Width, class Load, class Use>
__device__ void forUnits(const ChannelTable &table, const Slice &slice, Load load, Use use) {
  constexpr uint32_t kStep = kBatchNormThreads * Width;
  const uint32_t skipped = (table.channels - 1) * table.plane;
  const uint32_t base = slice.channel * table.plane;
  for (uint32_t first = slice.begin + threadIdx.x * Width; first < slice.end;
       first += kBatch<T, Width> * kStep) {
    uint32_t offsets[kBatch<T, Width>];
#pragma unroll
    for (int b = 0; b < kBatch<T, Width>; ++b)
      if (const uint32_t element = first + b * kStep; element < slice.end) {
        offsets[b] = base + element + table.planes.quotient(element) * skipped;
        load(b, offsets[b]);
      }
#pragma unroll
    for (int b = 0; b < kBatch<T, Width>; ++b)
      if (first + b * kStep < slice.end)
        use(b, offsets[b]);
  }
}

/// A word of as many bytes as a unit.
template <int Bytes> struct WordOf;
template <> struct WordOf<16> {
  using Type = uint4;
};
template <> struct WordOf<8> {
  using Type = uint2;
};
template <> struct WordOf<4> {
  using Type = uint32_t;
};
template <> struct WordOf<2> {
  using Type = uint16_t;
};

/// The units of a batch that a thread has loaded, as words: as elements, each element of 16 bits
/// would take a register.
template <class T, int Width> struct Units {
  using Word = typename WordOf<Width * sizeof(T)>::Type;
  Word words[kBatch<T, Width>];

  __device__ void load(int b, const T *from) { words[b] = *reinterpret_cast<const Word *>(from); }
  __device__ float value(int b, int i) const {
    return toFloat(reinterpret_cast<const Pack<T, Width> *>(words)[b].v[i]);
  }
};

/// (x - mean) * scale + bias of a channel, computed alike in both directions.
struct Affine {
  float mean, scale, bias;

  /// Weight and bias may be null.
  __device__ Affine(uint32_t channel, float mean, float invstd, const float *weight,
                    const float *bias)
      : mean(mean), scale(weight ? weight[channel] * invstd : invstd),
        bias(bias ? bias[channel] : 0.0f) {}

  __device__ float operator()(float x) const { return fmaf(x - mean, scale, bias); }
};

template <class T> struct MomentsParameters {
  const T *x;
  Moments *moments;
  ChannelTable table;
};

/// A thread sums the deviations from its first element: with m elements, the variance loses at most
/// a factor of m in precision to cancellation, whatever the elements are.
template <class T>
__global__ void __launch_bounds__(kBatchNormThreads, kBatchNormBlocksPerMultiprocessor)
    batchNormMoments(const __grid_constant__ MomentsParameters<T> p) {
  griddepLaunchDependents();
  griddepWait();
  const Slice slice(p.table, blockIdx.x);
  float count = 0, shift = 0, sum = 0, squares = 0;
  withWidth<T>(p.table.width, [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    Units<T, kWidth> x;
    forUnits<T, kWidth>(
        p.table, slice, [&](int b, uint32_t offset) { x.load(b, p.x + offset); },
        [&](int b, uint32_t) {
          if (count == 0)
            shift = x.value(b, 0);
          count += kWidth;
#pragma unroll
          for (int i = 0; i < kWidth; ++i) {
            const float deviation = x.value(b, i) - shift;
            sum += deviation;
            squares += deviation * deviation;
          }
        });
  });
  const float mean = count > 0 ? sum / count : 0.0f;
  const Moments moments = blockMerged(Moments{count, shift + mean, squares - sum * mean});
  if (threadIdx.x == 0)
    p.moments[blockIdx.x] = moments;
}

template <class T> struct TrainParameters {
  const T *x, *residual; ///< residual may be null.
  const Moments *moments;
  const float *weight, *bias;            ///< May be null.
  const float *runningMean, *runningVar; ///< Null if nothing tracks them, and so are their results.
  T *y;
  float *mean, *invstd, *newMean, *newVar;
  ChannelTable table;
  float momentum, eps;
  bool relu;
};

template <class T>
__device__ void storeStatistics(const TrainParameters<T> &p, uint32_t channel,
                                const Moments &moments, float invstd) {
  p.mean[channel] = moments.mean;
  p.invstd[channel] = invstd;
  if (!p.runningMean)
    return;
  const float oldMean = p.runningMean[channel], oldVar = p.runningVar[channel];
  const float keep = 1.0f - p.momentum, variance = moments.squares / (moments.count - 1.0f);
  p.newMean[channel] = keep * oldMean + p.momentum * moments.mean;
  p.newVar[channel] = keep * oldVar + p.momentum * variance;
}

/// CTAs go backwards: what the first launch read last is in L2.
template <class T>
__global__ void __launch_bounds__(kBatchNormThreads, kBatchNormBlocksPerMultiprocessor)
    batchNormTrain(const __grid_constant__ TrainParameters<T> p) {
  griddepLaunchDependents();
  griddepWait();
  const Slice slice(p.table, gridDim.x - 1 - blockIdx.x);
  const Moments moments = splitsMerged(p.moments + slice.channel * p.table.splits, p.table.splits);
  const float invstd = rsqrtf(moments.squares / moments.count + p.eps);
  const Affine affine(slice.channel, moments.mean, invstd, p.weight, p.bias);
  if (slice.split == 0 && threadIdx.x == 0)
    storeStatistics(p, slice.channel, moments, invstd);
  withWidth<T>(p.table.width, [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    Units<T, kWidth> x, residual;
    forUnits<T, kWidth>(
        p.table, slice,
        [&](int b, uint32_t offset) {
          x.load(b, p.x + offset);
          if (p.residual)
            residual.load(b, p.residual + offset);
        },
        [&](int b, uint32_t offset) {
          float y[kWidth];
#pragma unroll
          for (int i = 0; i < kWidth; ++i) {
            y[i] = affine(x.value(b, i));
            if (p.residual)
              y[i] = toFloat(fromFloat<T>(y[i])) + residual.value(b, i);
            if (p.relu)
              y[i] = device::Relu()(y[i]);
          }
          storeFloats(p.y + offset, y);
        });
  });
}

/// What both launches of the gradient read.
template <class T> struct GradientOperands {
  const T *gradient, *x;
  const float *mean, *invstd;
  const float *weight, *bias; ///< May be null.
  bool relu;                  ///< The gradient is that of relu's result.

  __device__ Affine affine(uint32_t channel) const {
    return {channel, mean[channel], invstd[channel], weight, bias};
  }
  /// The gradient of the normalized x.
  __device__ float ofNormalized(const Affine &affine, float gradient, float x) const {
    return relu && toFloat(fromFloat<T>(affine(x))) <= 0 ? 0.0f : gradient;
  }
};

template <class T> struct SumsParameters {
  GradientOperands<T> operands;
  Sums *sums;
  ChannelTable table;
};

template <class T>
__global__ void __launch_bounds__(kBatchNormThreads, kBatchNormBlocksPerMultiprocessor)
    batchNormSums(const __grid_constant__ SumsParameters<T> p) {
  griddepLaunchDependents();
  griddepWait();
  const Slice slice(p.table, blockIdx.x);
  const Affine affine = p.operands.affine(slice.channel);
  Sums sums{};
  withWidth<T>(p.table.width, [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    Units<T, kWidth> gradient, x;
    forUnits<T, kWidth>(
        p.table, slice,
        [&](int b, uint32_t offset) {
          gradient.load(b, p.operands.gradient + offset);
          x.load(b, p.operands.x + offset);
        },
        [&](int b, uint32_t) {
#pragma unroll
          for (int i = 0; i < kWidth; ++i) {
            const float value = x.value(b, i);
            const float g = p.operands.ofNormalized(affine, gradient.value(b, i), value);
            sums.gradient += g;
            sums.product += g * (value - affine.mean);
          }
        });
  });
  sums = blockMerged(sums);
  if (threadIdx.x == 0)
    p.sums[blockIdx.x] = sums;
}

template <class T> struct BackwardParameters {
  GradientOperands<T> operands;
  const Sums *sums;
  T *dx;
  float *weightGradient, *biasGradient; ///< May be null.
  ChannelTable table;
};

template <class T>
__global__ void __launch_bounds__(kBatchNormThreads, kBatchNormBlocksPerMultiprocessor)
    batchNormBackward(const __grid_constant__ BackwardParameters<T> p) {
  griddepLaunchDependents();
  griddepWait();
  const Slice slice(p.table, gridDim.x - 1 - blockIdx.x);
  const Sums sums = splitsMerged(p.sums + slice.channel * p.table.splits, p.table.splits);
  const Affine affine = p.operands.affine(slice.channel);
  const float invstd = p.operands.invstd[slice.channel];
  if (slice.split == 0 && threadIdx.x == 0) {
    if (p.weightGradient)
      p.weightGradient[slice.channel] = sums.product * invstd;
    if (p.biasGradient)
      p.biasGradient[slice.channel] = sums.gradient;
  }
  const auto count = static_cast<float>(p.table.elements);
  const float mean = sums.gradient / count, slope = sums.product / count * invstd * invstd;
  withWidth<T>(p.table.width, [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    Units<T, kWidth> gradient, x;
    forUnits<T, kWidth>(
        p.table, slice,
        [&](int b, uint32_t offset) {
          gradient.load(b, p.operands.gradient + offset);
          x.load(b, p.operands.x + offset);
        },
        [&](int b, uint32_t offset) {
          float dx[kWidth];
#pragma unroll
          for (int i = 0; i < kWidth; ++i) {
            const float value = x.value(b, i);
            const float g = p.operands.ofNormalized(affine, gradient.value(b, i), value);
            dx[i] = (g - mean - (value - affine.mean) * slope) * affine.scale;
          }
          storeFloats(p.dx + offset, dx);
        });
  });
}

template <class T>
Result<KernelParameters> bindMoments(const LaunchView &launch, const LaunchAddresses &at) {
  return KernelParameters(MomentsParameters<T>{
      static_cast<const T *>(at.reads[0]), static_cast<Moments *>(at.writes[0]),
      ChannelTable(*checkBatchNormMoments(launch, kDTypeOf<T>))});
}

template <class T>
Result<KernelParameters> bindTrain(const LaunchView &launch, const LaunchAddresses &at) {
  const auto readFloats = [&](size_t i) { return static_cast<const float *>(at.reads[i]); };
  const auto writtenFloats = [&](size_t i) { return static_cast<float *>(at.writes[i]); };
  return KernelParameters(TrainParameters<T>{
      static_cast<const T *>(at.reads[kTrainX]), static_cast<const T *>(at.reads[kTrainResidual]),
      static_cast<const Moments *>(at.reads[kTrainMoments]), readFloats(kTrainWeight),
      readFloats(kTrainBias), readFloats(kTrainRunningMean), readFloats(kTrainRunningVar),
      static_cast<T *>(at.writes[kTrainY]), writtenFloats(kTrainMean), writtenFloats(kTrainInvstd),
      writtenFloats(kTrainNewMean), writtenFloats(kTrainNewVar),
      ChannelTable(*checkBatchNormTrain(launch, kDTypeOf<T>)), static_cast<float>(launch.floats[0]),
      static_cast<float>(launch.floats[1]), launch.ints[0] != 0});
}

template <class T>
GradientOperands<T> gradientOperands(const LaunchView &launch, const LaunchAddresses &at) {
  const auto floats = [&](size_t i) { return static_cast<const float *>(at.reads[i]); };
  return {static_cast<const T *>(at.reads[0]),
          static_cast<const T *>(at.reads[1]),
          floats(2),
          floats(3),
          floats(4),
          floats(5),
          launch.ints[0] != 0};
}

template <class T>
Result<KernelParameters> bindSums(const LaunchView &launch, const LaunchAddresses &at) {
  return KernelParameters(
      SumsParameters<T>{gradientOperands<T>(launch, at), static_cast<Sums *>(at.writes[0]),
                        ChannelTable(*checkBatchNormSums(launch, kDTypeOf<T>))});
}

template <class T>
Result<KernelParameters> bindBackward(const LaunchView &launch, const LaunchAddresses &at) {
  return KernelParameters(
      BackwardParameters<T>{gradientOperands<T>(launch, at), static_cast<const Sums *>(at.reads[6]),
                            static_cast<T *>(at.writes[0]), static_cast<float *>(at.writes[1]),
                            static_cast<float *>(at.writes[2]),
                            ChannelTable(*checkBatchNormBackward(launch, kDTypeOf<T>))});
}

} // namespace

CGC_FLOAT_KERNELS(batch_norm_moments, batchNormMoments, bindMoments)
CGC_FLOAT_KERNELS(batch_norm_train, batchNormTrain, bindTrain)
CGC_FLOAT_KERNELS(batch_norm_sums, batchNormSums, bindSums)
CGC_FLOAT_KERNELS(batch_norm_backward, batchNormBackward, bindBackward)

} // namespace cgc
