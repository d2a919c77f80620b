// batch_norm_*_nhwc: batch normalization of rows of channels in training, and its gradient, in two
// launches each. A CTA has a tile of channels and a split of the rows.
#include "runtime/kernels/batch_norm/batch_norm.cuh"

namespace cgc {
namespace {

using namespace device;

/// The loads of a tensor that a thread has in flight at a time.
constexpr int kRowBatch = 4;

/// The part of a tensor that a CTA has, and that of a thread in it: 16 bytes of channels of every
/// rows()-th row.
template <class T> struct Tile {
  static constexpr int kWidth = Vector<T>::kSize;
  static constexpr int kMostChannels = kBatchNormTileVectors * kWidth;

  const ChannelTable &table;
  uint32_t split, firstChannel, vector, lane;

  __device__ Tile(const ChannelTable &table, uint32_t block)
      : table(table), split(block % table.splits),
        firstChannel(block / table.splits * table.tileVectors * kWidth),
        vector(threadIdx.x % table.tileVectors), lane(threadIdx.x / table.tileVectors) {}

  /// The rows that a CTA reads at a time.
  __device__ uint32_t rows() const { return kBatchNormThreads / table.tileVectors; }
  /// The channels of the tile; the last tile may have fewer than the others.
  __device__ uint32_t channels() const {
    return min(table.tileVectors * kWidth, table.channels - firstChannel);
  }
  /// The thread's first channel in the tile.
  __device__ uint32_t ownChannel() const { return vector * kWidth; }

  /// Calls load(b, offset), then use(b, offset), for the thread's rows, kRowBatch at a time. `b` is
  /// a constant once the loops are unrolled; `offset` is that of the 16 bytes in the tensor.
  template <class Load, class Use> __device__ void forRows(Load load, Use use) const {
    if (ownChannel() >= channels())
      return;
    const uint64_t first = uint64_t(split) * table.splitElements;
    const auto end = uint32_t(min(first + table.splitElements, uint64_t(table.elements)));
    const uint32_t channel = firstChannel + ownChannel();
    for (uint64_t from = first + lane; from < end; from += kRowBatch * rows()) {
#pragma unroll
      for (int b = 0; b < kRowBatch; ++b)
        if (const auto row = uint32_t(from + b * rows()); row < end)
          load(b, row * table.channels + channel);
#pragma unroll
      for (int b = 0; b < kRowBatch; ++b)
        if (const auto row = uint32_t(from + b * rows()); row < end)
          use(b, row * table.channels + channel);
    }
  }
};

/// The 16 bytes of each row of a batch, as words: as elements, each element of 16 bits would take a
/// register.
template <class T> struct RowVectors {
  uint4 words[kRowBatch];

  __device__ void load(int b, const T *from) { words[b] = *reinterpret_cast<const uint4 *>(from); }
  __device__ float value(int b, int i) const {
    return toFloat(reinterpret_cast<const Vector<T> *>(words)[b].v[i]);
  }
};

/// Merges the parts of all threads for each channel of the tile, always in the same order, and
/// stores them as this split's.
template <class T, class Part>
__device__ void storeSplit(const Tile<T> &tile, const Part (&own)[Tile<T>::kWidth], Part *splits) {
  __shared__ Part parts[kBatchNormThreads][Tile<T>::kWidth];
#pragma unroll
  for (int i = 0; i < Tile<T>::kWidth; ++i)
    parts[threadIdx.x][i] = own[i];
  __syncthreads();
  if (threadIdx.x >= tile.channels())
    return;
  const uint32_t vector = threadIdx.x / Tile<T>::kWidth, i = threadIdx.x % Tile<T>::kWidth;
  Part part{};
  for (uint32_t lane = 0; lane < tile.rows(); ++lane)
    part = merged(part, parts[lane * tile.table.tileVectors + vector][i]);
  splits[uint64_t(tile.firstChannel + threadIdx.x) * tile.table.splits + tile.split] = part;
}

/// Calls f(channel in the tile, part) once for each channel of the tile, with the parts of all
/// splits merged. Each CTA computes the same. 256 threads are a power of two of them for a channel.
template <class T, class Part, class F>
__device__ void forMergedChannels(const Tile<T> &tile, const Part *splits, F f) {
  const uint32_t threads = kBatchNormThreads / (tile.table.tileVectors * Tile<T>::kWidth);
  const uint32_t channel = threadIdx.x / threads;
  const bool isInside = channel < tile.channels();
  const Part *own = splits + uint64_t(tile.firstChannel + channel) * tile.table.splits;
  Part part{};
  for (uint32_t i = threadIdx.x % threads; isInside && i < tile.table.splits; i += threads)
    part = merged(part, own[i]);
  for (uint32_t offset = threads / 2; offset > 0; offset /= 2)
    part = merged(
        part, mapFloats(part, [&](float v) { return __shfl_down_sync(0xffffffffu, v, offset); }));
  if (isInside && threadIdx.x % threads == 0)
    f(channel, part);
}

template <class T>
__global__ void __launch_bounds__(kBatchNormThreads, kBatchNormRowBlocksPerMultiprocessor)
    batchNormMoments(const __grid_constant__ MomentsParameters<T> p) {
  griddepLaunchDependents();
  griddepWait();
  constexpr int kWidth = Tile<T>::kWidth;
  const Tile<T> tile(p.table, blockIdx.x);
  float count = 0, shift[kWidth] = {}, sum[kWidth] = {}, squares[kWidth] = {};
  RowVectors<T> x;
  tile.forRows([&](int b, uint32_t offset) { x.load(b, p.x + offset); },
               [&](int b, uint32_t) {
                 count += 1;
#pragma unroll
                 for (int i = 0; i < kWidth; ++i) {
                   if (count == 1)
                     shift[i] = x.value(b, i);
                   const float deviation = x.value(b, i) - shift[i];
                   sum[i] += deviation;
                   squares[i] += deviation * deviation;
                 }
               });
  Moments moments[kWidth];
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    const float mean = count > 0 ? sum[i] / count : 0.0f;
    moments[i] = {count, shift[i] + mean, squares[i] - sum[i] * mean};
  }
  storeSplit(tile, moments, p.moments);
}

/// CTAs go backwards: what the first launch read last is in L2.
template <class T>
__global__ void __launch_bounds__(kBatchNormThreads, kBatchNormRowBlocksPerMultiprocessor)
    batchNormTrain(const __grid_constant__ TrainParameters<T> p) {
  griddepLaunchDependents();
  griddepWait();
  constexpr int kWidth = Tile<T>::kWidth;
  const Tile<T> tile(p.table, gridDim.x - 1 - blockIdx.x);
  __shared__ Affine affines[Tile<T>::kMostChannels];
  forMergedChannels(tile, p.moments, [&](uint32_t channel, const Moments &moments) {
    const float invstd = rsqrtf(moments.squares / moments.count + p.eps);
    affines[channel] =
        affineOf(tile.firstChannel + channel, moments.mean, invstd, p.weight, p.bias);
    if (tile.split == 0)
      storeStatistics(p, tile.firstChannel + channel, moments, invstd);
  });
  __syncthreads();
  Affine affine[kWidth];
#pragma unroll
  for (int i = 0; i < kWidth; ++i)
    affine[i] = affines[tile.ownChannel() + i];
  RowVectors<T> x, residual;
  tile.forRows(
      [&](int b, uint32_t offset) {
        x.load(b, p.x + offset);
        if (p.residual)
          residual.load(b, p.residual + offset);
      },
      [&](int b, uint32_t offset) {
        float y[kWidth];
#pragma unroll
        for (int i = 0; i < kWidth; ++i)
          y[i] = resultOf(p, affine[i], x.value(b, i), p.residual ? residual.value(b, i) : 0.0f);
        storeFloats(p.y + offset, y);
      });
}

template <class T>
__global__ void __launch_bounds__(kBatchNormThreads, kBatchNormRowBlocksPerMultiprocessor)
    batchNormSums(const __grid_constant__ SumsParameters<T> p) {
  griddepLaunchDependents();
  griddepWait();
  constexpr int kWidth = Tile<T>::kWidth;
  const Tile<T> tile(p.table, blockIdx.x);
  Affine affine[kWidth];
#pragma unroll
  for (int i = 0; i < kWidth; ++i)
    if (tile.ownChannel() < tile.channels())
      affine[i] = p.operands.affine(tile.firstChannel + tile.ownChannel() + i);
  Sums sums[kWidth] = {};
  RowVectors<T> gradient, x, result, addend;
  const auto load = [&](int b, uint32_t offset) {
    gradient.load(b, p.operands.gradient + offset);
    x.load(b, p.operands.x + offset);
  };
  if (p.relu.result)
    tile.forRows(
        [&](int b, uint32_t offset) {
          load(b, offset);
          result.load(b, p.relu.result + offset);
          if (p.relu.addend)
            addend.load(b, p.relu.addend + offset);
        },
        [&](int b, uint32_t offset) {
          float masked[kWidth];
#pragma unroll
          for (int i = 0; i < kWidth; ++i) {
            masked[i] = p.relu(gradient.value(b, i), p.relu.addend ? addend.value(b, i) : 0.0f,
                               result.value(b, i));
            sums[i].add(masked[i], x.value(b, i) - affine[i].mean);
          }
          storeFloats(p.relu.masked + offset, masked);
        });
  else
    tile.forRows(load, [&](int b, uint32_t) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        const float value = x.value(b, i);
        sums[i].add(p.operands.ofNormalized(affine[i], gradient.value(b, i), value),
                    value - affine[i].mean);
      }
    });
  storeSplit(tile, sums, p.sums);
}

template <class T>
__global__ void __launch_bounds__(kBatchNormThreads, kBatchNormRowBlocksPerMultiprocessor)
    batchNormBackward(const __grid_constant__ BackwardParameters<T> p) {
  griddepLaunchDependents();
  griddepWait();
  constexpr int kWidth = Tile<T>::kWidth;
  const Tile<T> tile(p.table, gridDim.x - 1 - blockIdx.x);
  __shared__ Affine affines[Tile<T>::kMostChannels];
  __shared__ ChannelGradient channels[Tile<T>::kMostChannels];
  forMergedChannels(tile, p.sums, [&](uint32_t inTile, const Sums &sums) {
    const uint32_t channel = tile.firstChannel + inTile;
    affines[inTile] = p.operands.affine(channel);
    channels[inTile] =
        channelGradientOf(sums, static_cast<float>(p.table.elements), p.operands.invstd[channel]);
    if (tile.split == 0)
      storeGradients(p, channel, sums);
  });
  __syncthreads();
  Affine affine[kWidth];
  ChannelGradient dxOf[kWidth];
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    affine[i] = affines[tile.ownChannel() + i];
    dxOf[i] = channels[tile.ownChannel() + i];
  }
  RowVectors<T> gradient, x;
  tile.forRows(
      [&](int b, uint32_t offset) {
        gradient.load(b, p.operands.gradient + offset);
        x.load(b, p.operands.x + offset);
      },
      [&](int b, uint32_t offset) {
        float dx[kWidth];
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          const float value = x.value(b, i);
          const float g = p.operands.ofNormalized(affine[i], gradient.value(b, i), value);
          dx[i] = dxOf[i](affine[i], g, value);
        }
        storeFloats(p.dx + offset, dx);
      });
}

} // namespace

#define CGC_BATCH_NORM_KERNELS(DTYPE, T)                                                           \
  CGC_KERNEL_OF(batch_norm_moments_nhwc_##DTYPE, batchNormMoments<T>,                              \
                (bindMoments<T, BatchNormOrder::Nhwc>))                                            \
  CGC_KERNEL_OF(batch_norm_train_nhwc_##DTYPE, batchNormTrain<T>,                                  \
                (bindTrain<T, BatchNormOrder::Nhwc>))                                              \
  CGC_KERNEL_OF(batch_norm_sums_nhwc_##DTYPE, batchNormSums<T>,                                    \
                (bindSums<T, BatchNormOrder::Nhwc>))                                               \
  CGC_KERNEL_OF(batch_norm_backward_nhwc_##DTYPE, batchNormBackward<T>,                            \
                (bindBackward<T, BatchNormOrder::Nhwc>))
CGC_BATCH_NORM_KERNELS(f32, float)
CGC_BATCH_NORM_KERNELS(f16, __half)
CGC_BATCH_NORM_KERNELS(bf16, __nv_bfloat16)
#undef CGC_BATCH_NORM_KERNELS

} // namespace cgc
