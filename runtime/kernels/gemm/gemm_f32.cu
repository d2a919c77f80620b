// gemm_f32_*: a GEMM in f32, for products so small that they are bound by latency. A CTA, or a
// split-K cluster, computes 64 x 64 of y. Two groups of four warps share the columns of each step
// of K, a warp has 32 x 32 of y. cp.async fills a ring of steps.
//
// Tensor cores multiply each number as the sum of two of TF32. They round sums toward zero, so that
// the products of 16 columns of K are added to those before on CUDA cores (Ootomo and Yokota,
// "Recovering single precision accuracy from Tensor Cores while surpassing the FP32 theoretical
// peak performance", 2022). The results are as exact as those of f32 products and sums, but
// infinities become NaN. The groups' sums, and then those of the cluster's CTAs, are added in a
// fixed order.
#include "runtime/kernels/gemm/gemm_f32.h"

#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/sm80/async_copy.cuh"
#include "runtime/kernels/sm80/warp_mma.cuh"
#include "runtime/kernels/sm90/hopper.cuh"

// Device code is used on sm_90a alone.
#pragma nv_diag_suppress 177

namespace cgc {
namespace {

using namespace device;

/// An operand [rows, k].
struct GemmF32Matrix {
  const float *data;
  int64_t stride;
  int rows;
  bool alongRows;
};

struct GemmF32Parameters {
  GemmF32Matrix a, b;
  const float *bias; ///< Or null.
  float *y, *sums;   ///< The sums may be null.
  int64_t yStride;
  int k;
};

constexpr int kTile = int(kGemmF32Tile), kStep = int(kGemmF32Step), kStages = int(kGemmF32Stages),
              kThreads = int(kGemmF32Threads), kGroups = int(kGemmF32Groups),
              kStepVectors = kTile * kStep / 4, // Of an operand.
    kCopies = kStepVectors / kThreads, kPartialRow = int(kGemmF32PartialRow),
              kPartialVectors = kTile * kPartialRow / 4, kTileVectors = kTile * kTile / 4;

// A step of an operand lies in shared memory as in global memory: [row][k], or [k][row]. The
// vectors of a line are permuted so that the loads of a warp use all banks.

/// One thread's part of the copies of an operand to shared memory.
class Copies {
public:
  /// Begins at row row0 and column k0 of `matrix`, whose columns end at kEnd.
  __device__ Copies(const GemmF32Matrix &matrix, int row0, int k0, int kEnd) {
    const int perLine = (matrix.alongRows ? kTile : kStep) / 4;
    const int line = int(threadIdx.x) / perLine, vector = int(threadIdx.x) % perLine;
    const int lines = kThreads / perLine; // Between two copies.
    const int row = row0 + (matrix.alongRows ? vector * 4 : line);
    const int k = k0 + (matrix.alongRows ? line : vector * 4);
    from_ = matrix.data + (matrix.alongRows ? k * matrix.stride + row : row * matrix.stride + k);
    ofCopy_ = lines * matrix.stride;
    ofStep_ = matrix.alongRows ? kStep * matrix.stride : kStep;
    to_ = line * perLine + (vector ^ (matrix.alongRows ? line / 4 % 4 * 2 : line % 2 * 4));
#pragma unroll
    for (int c = 0; c < kCopies; ++c)
      left_[c] = row + (matrix.alongRows ? 0 : c * lines) < matrix.rows
                     ? kEnd - k - (matrix.alongRows ? c * lines : 0)
                     : 0;
  }

  /// Starts the copies of the next step. Rows and columns behind the last are 0.
  __device__ void start(float4 *step) {
#pragma unroll
    for (int c = 0; c < kCopies; ++c) {
      const float *const from = from_ + c * ofCopy_;
      copyAsync(step + to_ + c * kThreads, from, left_[c] > 0);
      left_[c] -= kStep;
    }
    from_ += ofStep_;
  }

private:
  const float *from_;
  int64_t ofCopy_, ofStep_; ///< Elements to the next copy of a step, and to the next step.
  int to_;
  int left_[kCopies]; ///< Columns from a copy's first one to the last; 0 behind the last row.
};

/// A thread's elements of 32 rows and 16 columns of a step: rows q * 8 + lane / 4, columns
/// lane % 4 * 4 + j. Any order of the columns does, as long as it is that of both operands.
struct Fragment {
  float values[4][4]; ///< [q][j]
};

/// Loads the rows from row0 on and the columns of group `group`.
__device__ Fragment loadFragment(bool alongRows, const float4 *step, int row0, int group) {
  const int lane = int(threadIdx.x) % 32, row = lane / 4, quad = lane % 4;
  Fragment fragment;
  if (alongRows) {
    const float *const column =
        reinterpret_cast<const float *>(step) + (group * 16 + quad * 4) * kTile + row0 + row;
#pragma unroll
    for (int q = 0; q < 4; ++q)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        fragment.values[q][j] = column[j * kTile + (q ^ quad) * 8];
    return fragment;
  }
  constexpr int kVectors = kStep / 4;
  const float4 *const line = step + (row0 + row) * kVectors + ((group * 4 + quad) ^ row % 2 * 4);
#pragma unroll
  for (int q = 0; q < 4; ++q) {
    const float4 v = line[q * 8 * kVectors];
    fragment.values[q][0] = v.x;
    fragment.values[q][1] = v.y;
    fragment.values[q][2] = v.z;
    fragment.values[q][3] = v.w;
  }
  return fragment;
}

/// A number as the sum of two of TF32, each in the upper 19 bits; those below count for nothing.
struct Tf32Pair {
  uint32_t high, low;
};
__device__ Tf32Pair split(float x) {
  // Rounds to the nearest. The rest has at most 12 bits, of which the last may be lost.
  const uint32_t high = (__float_as_uint(x) + 0x1000) & 0xffffe000;
  return {high, __float_as_uint(x - __uint_as_float(high))};
}

/// sums[m][n] += a b^T for the 16 x 8 tiles of 32 x 32.
__device__ void multiplyFragments(const Fragment &a, const Fragment &b, float (&sums)[2][4][4]) {
  uint32_t highA[2][2][4], lowA[2][2][4]; // [m][half of the columns]
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int half = i / 4, row = i % 2, column = i % 4 / 2;
      const Tf32Pair pair = split(a.values[m * 2 + row][half * 2 + column]);
      highA[m][half][i % 4] = pair.high;
      lowA[m][half][i % 4] = pair.low;
    }
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    Tf32Pair pairs[4];
#pragma unroll
    for (int j = 0; j < 4; ++j)
      pairs[j] = split(b.values[n][j]);
    float products[2][4] = {};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Tf32Pair &first = pairs[half * 2], &second = pairs[half * 2 + 1];
#pragma unroll
      for (int m = 0; m < 2; ++m)
        multiplyTf32(products[m], lowA[m][half], first.high, second.high);
#pragma unroll
      for (int m = 0; m < 2; ++m)
        multiplyTf32(products[m], highA[m][half], first.low, second.low);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int m = 0; m < 2; ++m)
        multiplyTf32(products[m], highA[m][half], pairs[half * 2].high, pairs[half * 2 + 1].high);
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        sums[m][n][i] += products[m][i];
  }
}

__device__ float4 add(float4 x, float4 y) {
  return make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

/// Shared memory behind the ring: the parts of this CTA's share of y, and of the sums of rows, that
/// the CTAs of the cluster have sent.
template <int kSplitK> struct Received {
  float4 tile[kSplitK][kTileVectors / kSplitK];
  float4 rowSums[kSplitK][kTile / 4]; ///< In the first CTA.
};
static_assert(sizeof(Received<8>) + kStages * kStepVectors * 2 * sizeof(float4) <=
              kGemmF32SharedBytes);
static_assert(kGroups * (kPartialVectors * sizeof(float4) + kTile * sizeof(float)) <=
              kStages * kStepVectors * 2 * sizeof(float4));

template <int kSplitK>
__global__ void __launch_bounds__(kThreads, 2) __cluster_dims__(kSplitK, 1, 1)
    gemmF32(const __grid_constant__ GemmF32Parameters p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ float4 shared[];
  const int rank = kSplitK > 1 ? int(clusterRank()) : 0;
  const int n0 = int(blockIdx.x) / kSplitK * kTile, m0 = int(blockIdx.y) * kTile;
  const int allSteps = (p.k + kStep - 1) / kStep;
  const int first = allSteps * rank / kSplitK, steps = allSteps * (rank + 1) / kSplitK - first;
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
  const int group = warp / 4, warpM = warp / 2 % 2 * 32, warpN = warp % 2 * 32;
  const bool sumsRows = p.sums && n0 == 0;
  griddepLaunchDependents();
  if constexpr (kSplitK > 1)
    syncClusterRelaxed(); // All CTAs have started, so that they can be sent sums.
  griddepWait();

  Copies a(p.a, m0, first * kStep, p.k), b(p.b, n0, first * kStep, p.k);
  const auto start = [&](int step) {
    float4 *const stage = shared + step % kStages * kStepVectors * 2;
    if (step < steps) {
      a.start(stage);
      b.start(stage + kStepVectors);
    }
    commitCopies();
  };
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s)
    start(s);
  float sums[2][4][4] = {}, rowSums[4] = {};
#pragma unroll 1
  for (int s = 0; s < steps; ++s) {
    waitForCopies<kStages - 2>();
    __syncthreads(); // Also: all threads have read the step before, whose memory is next.
    start(s + kStages - 1);
    const float4 *const stage = shared + s % kStages * kStepVectors * 2;
    const Fragment rowsA = loadFragment(p.a.alongRows, stage, warpM, group);
    const Fragment rowsB = loadFragment(p.b.alongRows, stage + kStepVectors, warpN, group);
    multiplyFragments(rowsA, rowsB, sums);
    if (sumsRows)
#pragma unroll
      for (int q = 0; q < 4; ++q)
        rowSums[q] +=
            (rowsA.values[q][0] + rowsA.values[q][1]) + (rowsA.values[q][2] + rowsA.values[q][3]);
  }

  // The groups' sums, in the memory of the ring: of the tile, and behind it of the rows.
  __syncthreads();
  float *const partial = reinterpret_cast<float *>(shared + group * kPartialVectors);
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = warpM + m * 16 + half * 8 + lane / 4, column = warpN + n * 8 + lane % 4 * 2;
        *reinterpret_cast<float2 *>(partial + row * kPartialRow + column) =
            make_float2(sums[m][n][half * 2], sums[m][n][half * 2 + 1]);
      }
  float4 *const groupRowSums = shared + kGroups * kPartialVectors;
  if (sumsRows && warpN == 0)
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      rowSums[q] += __shfl_xor_sync(~0u, rowSums[q], 1);
      rowSums[q] += __shfl_xor_sync(~0u, rowSums[q], 2);
      if (lane % 4 == 0)
        reinterpret_cast<float *>(groupRowSums)[group * kTile + warpM + q * 8 + lane / 4] =
            rowSums[q];
    }
  __syncthreads();
  const auto tileVector = [&](int i) {
    const float4 *const at = shared + i / (kTile / 4) * (kPartialRow / 4) + i % (kTile / 4);
    return add(at[0], at[kPartialVectors]);
  };
  const auto rowSumsVector = [&](int i) {
    return add(groupRowSums[i], groupRowSums[kTile / 4 + i]);
  };

  // Each CTA of the cluster adds up and stores its share.
  constexpr int kShare = kTileVectors / kSplitK;
  const auto store = [&](int i, float4 value) {
    const int row = m0 + i / (kTile / 4), column = n0 + i % (kTile / 4) * 4;
    if (row >= p.a.rows || column >= p.b.rows)
      return;
    if (p.bias)
      value = add(value, *reinterpret_cast<const float4 *>(p.bias + column));
    *reinterpret_cast<float4 *>(p.y + row * p.yStride + column) = value;
  };
  const auto storeRowSums = [&](int i, float4 value) {
    const float sums[] = {value.x, value.y, value.z, value.w};
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (m0 + i * 4 + j < p.a.rows)
        p.sums[m0 + i * 4 + j] = sums[j];
  };
  const int thread = int(threadIdx.x);
  if constexpr (kSplitK == 1) {
#pragma unroll
    for (int i = thread; i < kTileVectors; i += kThreads)
      store(i, tileVector(i));
    if (sumsRows && thread < kTile / 4)
      storeRowSums(thread, rowSumsVector(thread));
  } else {
    auto &received = *reinterpret_cast<Received<kSplitK> *>(shared + kStages * kStepVectors * 2);
#pragma unroll
    for (int i = thread; i < kTileVectors; i += kThreads)
      storeToCta(addressInCta(&received.tile[rank][i % kShare], i / kShare), tileVector(i));
    if (sumsRows && thread < kTile / 4)
      storeToCta(addressInCta(&received.rowSums[rank][thread], 0), rowSumsVector(thread));
    syncCluster();
    const auto sumOf = [&](const auto &parts, int i) {
      float4 sum = parts[0][i];
#pragma unroll
      for (int r = 1; r < kSplitK; ++r)
        sum = add(sum, parts[r][i]);
      return sum;
    };
#pragma unroll
    for (int i = thread; i < kShare; i += kThreads)
      store(rank * kShare + i, sumOf(received.tile, i));
    if (sumsRows && rank == 0 && thread < kTile / 4)
      storeRowSums(thread, sumOf(received.rowSums, thread));
  }
#endif
}

template <int64_t kSplitK>
Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  const GemmF32Launch l = *checkGemmF32(launch, kSplitK);
  const auto matrix = [&](size_t read, const GemmF32Launch::Matrix &layout, int64_t rows) {
    return GemmF32Matrix{static_cast<const float *>(at.reads[read]), layout.stride, int(rows),
                         layout.alongRows};
  };
  return KernelParameters(
      GemmF32Parameters{matrix(kGemmF32A, l.a, l.m), matrix(kGemmF32B, l.b, l.n),
                        static_cast<const float *>(at.reads[kGemmF32Bias]),
                        static_cast<float *>(at.writes[kGemmF32Y]),
                        static_cast<float *>(at.writes[kGemmF32Sums]), l.yStride, int(l.k)});
}

} // namespace

CGC_KERNEL_OF(gemm_f32_1, gemmF32<1>, bind<1>)
CGC_KERNEL_OF(gemm_f32_2, gemmF32<2>, bind<2>)
CGC_KERNEL_OF(gemm_f32_4, gemmF32<4>, bind<4>)
CGC_KERNEL_OF(gemm_f32_8, gemmF32<8>, bind<8>)

} // namespace cgc
