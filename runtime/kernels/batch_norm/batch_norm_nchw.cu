// batch_norm_*_nchw: batch normalization of planes of channels in training, and its gradient. Each
// is two launches: the first reduces splits of channels, the second combines the splits of its
// channel and computes elements.
#include "runtime/kernels/batch_norm/batch_norm.cuh"

namespace cgc {
namespace {

using namespace device;

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

/// CTAs go backwards: what the first launch read last is in L2.
template <class T>
__global__ void __launch_bounds__(kBatchNormThreads, kBatchNormBlocksPerMultiprocessor)
    batchNormTrain(const __grid_constant__ TrainParameters<T> p) {
  griddepLaunchDependents();
  griddepWait();
  const Slice slice(p.table, gridDim.x - 1 - blockIdx.x);
  const Moments moments = splitsMerged(p.moments + slice.channel * p.table.splits, p.table.splits);
  const float invstd = rsqrtf(moments.squares / moments.count + p.eps);
  const Affine affine = affineOf(slice.channel, moments.mean, invstd, p.weight, p.bias);
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
          for (int i = 0; i < kWidth; ++i)
            y[i] = resultOf(p, affine, x.value(b, i), p.residual ? residual.value(b, i) : 0.0f);
          storeFloats(p.y + offset, y);
        });
  });
}

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
    const auto load = [&](int b, uint32_t offset) {
      gradient.load(b, p.operands.gradient + offset);
      x.load(b, p.operands.x + offset);
    };
    if (p.relu.result)
      forUnits<T, kWidth>(p.table, slice, load, [&](int b, uint32_t offset) {
        float masked[kWidth], result[kWidth], addend[kWidth] = {};
        loadFloats(p.relu.result + offset, result);
        if (p.relu.addend)
          loadFloats(p.relu.addend + offset, addend);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          masked[i] = p.relu(gradient.value(b, i), addend[i], result[i]);
          sums.add(masked[i], x.value(b, i) - affine.mean);
        }
        storeFloats(p.relu.masked + offset, masked);
      });
    else
      forUnits<T, kWidth>(p.table, slice, load, [&](int b, uint32_t) {
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          const float value = x.value(b, i);
          sums.add(p.operands.ofNormalized(affine, gradient.value(b, i), value),
                   value - affine.mean);
        }
      });
  });
  sums = blockMerged(sums);
  if (threadIdx.x == 0)
    p.sums[blockIdx.x] = sums;
}

template <class T>
__global__ void __launch_bounds__(kBatchNormThreads, kBatchNormBlocksPerMultiprocessor)
    batchNormBackward(const __grid_constant__ BackwardParameters<T> p) {
  griddepLaunchDependents();
  griddepWait();
  const Slice slice(p.table, gridDim.x - 1 - blockIdx.x);
  const Sums sums = splitsMerged(p.sums + slice.channel * p.table.splits, p.table.splits);
  const Affine affine = p.operands.affine(slice.channel);
  const ChannelGradient dxOf = channelGradientOf(sums, static_cast<float>(p.table.elements),
                                                 p.operands.invstd[slice.channel]);
  if (slice.split == 0 && threadIdx.x == 0)
    storeGradients(p, slice.channel, sums);
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
            dx[i] = dxOf(affine, g, value);
          }
          storeFloats(p.dx + offset, dx);
        });
  });
}

} // namespace

#define CGC_BATCH_NORM_KERNELS(DTYPE, T)                                                           \
  CGC_KERNEL_OF(batch_norm_moments_nchw_##DTYPE, batchNormMoments<T>,                              \
                (bindMoments<T, BatchNormOrder::Nchw>))                                            \
  CGC_KERNEL_OF(batch_norm_train_nchw_##DTYPE, batchNormTrain<T>,                                  \
                (bindTrain<T, BatchNormOrder::Nchw>))                                              \
  CGC_KERNEL_OF(batch_norm_sums_nchw_##DTYPE, batchNormSums<T>,                                    \
                (bindSums<T, BatchNormOrder::Nchw>))                                               \
  CGC_KERNEL_OF(batch_norm_backward_nchw_##DTYPE, batchNormBackward<T>,                            \
                (bindBackward<T, BatchNormOrder::Nchw>))
CGC_BATCH_NORM_KERNELS(f32, float)
CGC_BATCH_NORM_KERNELS(f16, __half)
CGC_BATCH_NORM_KERNELS(bf16, __nv_bfloat16)
#undef CGC_BATCH_NORM_KERNELS

} // namespace cgc
