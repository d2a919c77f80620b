// embedding_backward_*: the sums of the rows of each id, always in the same order. The CTAs of the
// first row of an id look for all others.
#include "runtime/kernels/rowwise/embedding_backward.h"

#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/rowwise/warp_rows.cuh"

namespace cgc {
namespace {

using namespace device;

template <class T> struct EmbeddingBackwardParameters {
  const T *x;
  const void *ids;
  T *y;
  int rows, columns;
  int64_t tableRows, padding;
  bool isWide, vectors;
};

constexpr int kThreads = kEmbeddingBackwardThreads, kWarps = kThreads / 32;
constexpr int kLoads = 4; ///< Ids, or rows, that a thread loads at a time.
constexpr int kChunk = kThreads * kLoads;
constexpr int kVector = 4; ///< Columns of a lane.
static_assert(kEmbeddingBackwardColumns == 32 * kVector);

/// Which of this thread's ids of the rows from `begin` to `end`, a chunk at most, are `id`.
template <class T>
__device__ void compareIds(const EmbeddingBackwardParameters<T> &p, int begin, int end, int64_t id,
                           bool (&isEqual)[kLoads]) {
  int64_t ids[kLoads];
#pragma unroll
  for (int l = 0; l < kLoads; ++l) {
    const int row = begin + l * kThreads + int(threadIdx.x);
    ids[l] = row < end ? loadIndex(p.ids, p.isWide, row, p.tableRows) : -1;
  }
#pragma unroll
  for (int l = 0; l < kLoads; ++l)
    isEqual[l] = ids[l] == id;
}

__device__ bool anyOf(const bool (&values)[kLoads]) {
  bool any = false;
#pragma unroll
  for (int l = 0; l < kLoads; ++l)
    any = any || values[l];
  return __syncthreads_or(any);
}

/// Writes the rows of a chunk whose id is the CTA's to `found`, in a fixed order, and returns their
/// number.
__device__ int compact(int begin, const bool (&isEqual)[kLoads], int (&found)[kChunk]) {
  __shared__ int counts[kLoads][kWarps];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  unsigned ballots[kLoads];
#pragma unroll
  for (int l = 0; l < kLoads; ++l) {
    ballots[l] = __ballot_sync(0xffffffffu, isEqual[l]);
    if (lane == 0)
      counts[l][warp] = __popc(ballots[l]);
  }
  __syncthreads();
  int total = 0;
#pragma unroll
  for (int l = 0; l < kLoads; ++l)
    for (int w = 0; w < kWarps; ++w) {
      if (w == warp && isEqual[l])
        found[total + __popc(ballots[l] & ((1u << lane) - 1))] =
            begin + l * kThreads + int(threadIdx.x);
      total += counts[l][w];
    }
  __syncthreads();
  return total;
}

/// Adds this warp's share of the rows to the sums of its lane's columns.
template <class T>
__device__ void addRows(const EmbeddingBackwardParameters<T> &p, const int (&found)[kChunk],
                        int count, int column, float (&sums)[kVector]) {
  for (int first = threadIdx.x / 32; first < count; first += kLoads * kWarps) {
    float values[kLoads][kVector] = {};
#pragma unroll
    for (int l = 0; l < kLoads; ++l) {
      const int i = first + l * kWarps;
      if (i >= count)
        break;
      const T *x = p.x + int64_t(found[i]) * p.columns + column;
      if (p.vectors && column < p.columns)
        loadFloats(x, values[l]);
      else
#pragma unroll
        for (int k = 0; k < kVector; ++k)
          if (column + k < p.columns)
            values[l][k] = toFloat(x[k]);
    }
#pragma unroll
    for (int l = 0; l < kLoads; ++l)
#pragma unroll
      for (int k = 0; k < kVector; ++k)
        sums[k] += values[l][k];
  }
}

template <class T>
__global__ void __launch_bounds__(kEmbeddingBackwardThreads)
    embeddingBackward(const __grid_constant__ EmbeddingBackwardParameters<T> p) {
  griddepLaunchDependents();
  griddepWait();
  __shared__ int found[kChunk];
  __shared__ float parts[kWarps][kEmbeddingBackwardColumns];
  const int row = blockIdx.x, lane = threadIdx.x % 32;
  const int64_t id = loadIndex(p.ids, p.isWide, row, p.tableRows);
  if (id == p.padding)
    return;
  bool isEqual[kLoads];
  for (int begin = 0; begin < row; begin += kChunk) {
    compareIds(p, begin, row, id, isEqual);
    if (anyOf(isEqual))
      return; // Other CTAs sum the rows of this id.
  }
  const int column = int(blockIdx.y) * int(kEmbeddingBackwardColumns) + lane * kVector;
  float sums[kVector] = {};
  for (int begin = row; begin < p.rows; begin += kChunk) {
    compareIds(p, begin, p.rows, id, isEqual);
    if (!anyOf(isEqual))
      continue;
    const int count = compact(begin, isEqual, found);
    addRows(p, found, count, column, sums);
  }
#pragma unroll
  for (int k = 0; k < kVector; ++k)
    parts[threadIdx.x / 32][lane * kVector + k] = sums[k];
  __syncthreads();
  const int mine = int(blockIdx.y) * int(kEmbeddingBackwardColumns) + int(threadIdx.x);
  if (threadIdx.x >= kEmbeddingBackwardColumns || mine >= p.columns)
    return;
  float sum = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w)
    sum += parts[w][threadIdx.x];
  p.y[id * p.columns + mine] = fromFloat<T>(sum);
}

template <class T>
Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  const EmbeddingBackwardLaunch l = *checkEmbeddingBackward(launch, kDTypeOf<T>);
  return KernelParameters(EmbeddingBackwardParameters<T>{
      static_cast<const T *>(at.reads[0]), at.reads[1], static_cast<T *>(at.writes[0]), int(l.rows),
      int(l.columns), l.tableRows, launch.ints[0], launch.reads[1].dtype == DType::I64, l.vectors});
}

} // namespace

CGC_FLOAT_KERNELS(embedding_backward, embeddingBackward, bind)

} // namespace cgc
