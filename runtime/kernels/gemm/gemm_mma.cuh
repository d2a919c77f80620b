// gemm and gemm_norm on the tensor cores of every GPU from sm_80 on: mma.m16n8k16 and cp.async. A
// CTA computes a tile of y. Its four warps copy the operands of a step of K to a ring of stages in
// shared memory, and multiply the stage that has arrived. The epilogue is that of gemm.cuh: results
// are rounded and staged in the memory of the ring, then finished and stored row by row. Included
// by gemm_mma_f16.cu and gemm_mma_bf16.cu.
#pragma once

#include "runtime/kernels/gemm/gemm_rows.cuh"
#include "runtime/kernels/sm80/async_copy.cuh"
#include "runtime/kernels/sm80/warp_mma.cuh"

namespace cgc {
namespace {

template <class T> struct MmaParameters : RowParameters<T> {
  const T *x, *w;
  int64_t xStride, wStride; ///< From row to row, in elements.
};

template <int kN, int kM, GemmForm kForm> struct MmaShape {
  static constexpr GemmTile kTile{"", kN, kM, 1, false, kForm, true};
  static constexpr int kTileN = kN, kTileM = kM;
  static constexpr int kThreads = int(kTile.threads());
  /// A stage: rows of W, then rows of X, of kStepK columns in kParts parts of 16 bytes.
  static constexpr int kStepK = int(kTile.stepK()), kParts = kStepK / 8, kRowBytes = kStepK * 2;
  static constexpr int kWBytes = kN * kRowBytes, kStageBytes = kWBytes + kM * kRowBytes;
  /// The warps along M and N, and the part of y that a warp computes.
  static constexpr int kWarpsM = int(kTile.warpsM()), kWarpsN = int(kTile.warpsN());
  static constexpr int kWarpM = kM / kWarpsM, kWarpN = kN / kWarpsN;
  static_assert(kWarpM % 16 == 0 && kWarpN % 16 == 0 && kN % 64 == 0 && kN <= kThreads &&
                kM <= kThreads);
  /// Elements from row to row of the staged results, padded against bank conflicts.
  static constexpr int kResultPitch = kN + 8;
  /// CTAs on an SM that registers have to allow.
  static constexpr int kCtas = kN * kM > 64 * 128 ? 2 : kN *kM > 64 * 64 ? 3 : 4;
};

/// Where a part of a row lies in a stage. The order of parts changes from row to row, so that the
/// same part of eight consecutive rows lies in all banks.
template <class Shape> __device__ __forceinline__ int partOffset(int row, int part) {
  return row * Shape::kRowBytes + (part ^ row * Shape::kParts / 8 % Shape::kParts) * 16;
}

/// A thread's share of the copies of an operand: one part of every kRowStep-th row of the tile.
template <class T, class Shape, int kTileRows> struct TileCopies {
  static constexpr int kRowStep = Shape::kThreads / Shape::kParts, kRows = kTileRows / kRowStep;
  static_assert(kTileRows % kRowStep == 0 && kRowStep % 8 == 0);

  const T *all, *from; ///< The operand; the part of the first row in step 0.
  int64_t stride;      ///< From row to row of this thread, in elements.
  int rows;            ///< How many of its rows the operand has.
  int part, offset;    ///< Of the first row in a stage.

  __device__ TileCopies(const T *operand, int64_t rowStride, int firstRow, int operandRows)
      : all(operand), stride(rowStride * kRowStep), part(int(threadIdx.x) % Shape::kParts) {
    const int row = int(threadIdx.x) / Shape::kParts;
    from = operand + (firstRow + row) * rowStride + part * 8;
    rows = (operandRows - firstRow - row + kRowStep - 1) / kRowStep;
    offset = partOffset<Shape>(row, part);
  }
  /// Starts the copies of step `step`, zeros for what the operand has not.
  __device__ __forceinline__ void start(uint8_t *tile, int step, int k) const {
    const bool hasColumns = step * Shape::kStepK + part * 8 < k;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const bool isInside = hasColumns && i < rows;
      copyAsync(tile + offset + i * kRowStep * Shape::kRowBytes,
                isInside ? from + i * stride + step * Shape::kStepK : all, isInside);
    }
  }
};

/// Waits for this thread's copies of the oldest step of a ring of `stages` that it has not waited
/// for.
__device__ __forceinline__ void waitForStage(int stages) {
  static_assert(kMmaMaxStages == 4);
  if (stages == 2)
    waitForCopies<0>();
  else if (stages == 3)
    waitForCopies<1>();
  else
    waitForCopies<2>();
}

/// A warp's fragments of both operands for 16 of K.
template <class Shape> struct Fragments {
  uint32_t x[Shape::kWarpM / 16][4], w[Shape::kWarpN / 16][4];

  /// Loads them from columns 16 `k` on of a stage. xRow, xPart, wRow and wPart: what the lane
  /// addresses of the first ones.
  __device__ __forceinline__ void load(const uint8_t *stage, int k, int xRow, int xPart, int wRow,
                                       int wPart) {
    const uint8_t *const atX = stage + Shape::kWBytes + partOffset<Shape>(xRow, 2 * k + xPart),
                         *const atW = stage + partOffset<Shape>(wRow, 2 * k + wPart);
#pragma unroll
    for (int i = 0; i < Shape::kWarpM / 16; ++i)
      loadMatrices(x[i], atX + i * 16 * Shape::kRowBytes);
#pragma unroll
    for (int j = 0; j < Shape::kWarpN / 16; ++j)
      loadMatrices(w[j], atW + j * 16 * Shape::kRowBytes);
  }
};

/// The accumulators of a warp: fragments of 16 rows of y and 8 columns.
template <class Shape> using MmaSums = float[Shape::kWarpM / 16][Shape::kWarpN / 8][4];

template <class T, class Shape>
__device__ __forceinline__ void multiplyFragments(MmaSums<Shape> &sums,
                                                  const Fragments<Shape> &of) {
#pragma unroll
  for (int i = 0; i < Shape::kWarpM / 16; ++i)
#pragma unroll
    for (int j = 0; j < Shape::kWarpN / 8; ++j)
      multiply<T>(sums[i][j], of.x[i], of.w[j / 2][j % 2 * 2], of.w[j / 2][j % 2 * 2 + 1]);
}

/// Scales the accumulators of a warp and adds the bias, rounds them and writes them to the staged
/// tile. Row and column are those of the lane's first accumulator in the tile.
template <class T, GemmForm kForm, class Shape>
__device__ __forceinline__ void stageSums(T *staged, const MmaSums<Shape> &sums, const T *biases,
                                          const float *scales, int row, int column) {
#pragma unroll
  for (int j = 0; j < Shape::kWarpN / 8; ++j) {
    const float2 bias = toFloats(*reinterpret_cast<const Pair<T> *>(biases + column + j * 8));
#pragma unroll
    for (int i = 0; i < Shape::kWarpM / 16; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int m = row + i * 16 + half * 8;
        float a = sums[i][j][half * 2], b = sums[i][j][half * 2 + 1];
        if constexpr (kForm == GemmForm::Norm) {
          a = fmaf(a, scales[m], bias.x);
          b = fmaf(b, scales[m], bias.y);
        } else {
          a += bias.x;
          b += bias.y;
        }
        *reinterpret_cast<uint32_t *>(staged + m * Shape::kResultPitch + column + j * 8) =
            packPair<T>(a, b);
      }
  }
}

template <class T, class Shape, GemmForm kForm>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kCtas)
    gemmMma(const __grid_constant__ MmaParameters<T> p) {
  extern __shared__ __align__(128) uint8_t memory[];
  __shared__ alignas(4) T biases[Shape::kTileN];
  __shared__ float scales[kForm == GemmForm::Norm ? Shape::kTileM : 1]; // Of rows.

  const int n0 = int(blockIdx.x) * Shape::kTileN, m0 = int(blockIdx.y) * Shape::kTileM;
  const int thread = int(threadIdx.x), warp = thread / 32, lane = thread % 32;
  griddepLaunchDependents();

  // The first steps of both operands, all but one of as many as there are stages.
  const TileCopies<T, Shape, Shape::kTileN> w(p.w, p.wStride, n0, p.n);
  const TileCopies<T, Shape, Shape::kTileM> x(p.x, p.xStride, m0, p.m);
  if (!p.wIsConstant)
    griddepWait();
#pragma unroll 1
  for (int s = 0; s < p.stages - 1; ++s)
    w.start(memory + s * Shape::kStageBytes, s, p.k);
  // Beyond, the kernel reads what earlier kernels wrote, and overwrites what they may still read.
  griddepWait();
#pragma unroll 1
  for (int s = 0; s < p.stages - 1; ++s) {
    x.start(memory + s * Shape::kStageBytes + Shape::kWBytes, s, p.k);
    commitCopies();
  }
  if (thread < Shape::kTileN)
    biases[thread] = p.bias && n0 + thread < p.n ? p.bias[n0 + thread] : fromFloat<T>(0);
  if constexpr (kForm == GemmForm::Norm)
    if (thread < Shape::kTileM)
      scales[thread] = m0 + thread < p.m ? scaleOf(p, int64_t(m0 + thread)) : 0;

  // The mainloop. The fragments of the next 16 of K are loaded before the present ones are
  // multiplied. ldmatrix: matrices 0 and 1 of X are rows 0-7 and 8-15, 2 and 3 the next 8 columns
  // of these; matrices 0 and 1 of W are columns 0-7 and 8-15 of 8 rows, 2 and 3 those of the next
  // rows.
  const int warpM = warp / Shape::kWarpsN * Shape::kWarpM,
            warpN = warp % Shape::kWarpsN * Shape::kWarpN;
  const int xRow = warpM + lane % 16, xPart = lane / 16;
  const int wRow = warpN + lane / 16 * 8 + lane % 8, wPart = lane / 8 % 2;
  const int steps = (p.k + Shape::kStepK - 1) / Shape::kStepK;
  MmaSums<Shape> sums = {};
  Fragments<Shape> fragments[2];
  int stage = 0, freeStage = p.stages - 1;
  waitForStage(p.stages);
  __syncthreads(); // The copies of all threads have arrived, too.
  fragments[0].load(memory, 0, xRow, xPart, wRow, wPart);
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    // All warps have read the stage of the previous step.
    if (const int ahead = step + p.stages - 1; ahead < steps) {
      uint8_t *const to = memory + freeStage * Shape::kStageBytes;
      w.start(to, ahead, p.k);
      x.start(to + Shape::kWBytes, ahead, p.k);
    }
    commitCopies(); // A group for each step, if only an empty one.
    freeStage = stage;
    constexpr int kFragments = Shape::kStepK / 16;
    static_assert(kFragments % 2 == 0);
#pragma unroll
    for (int k = 0; k < kFragments; ++k) {
      if (k == kFragments - 1) {
        stage = stage + 1 == p.stages ? 0 : stage + 1;
        waitForStage(p.stages);
        __syncthreads();
      }
      // Behind the last step these are loaded, but not multiplied.
      fragments[(k + 1) % 2].load(memory + stage * Shape::kStageBytes, (k + 1) % kFragments, xRow,
                                  xPart, wRow, wPart);
      multiplyFragments<T>(sums, fragments[k % 2]);
    }
  }

  // A thread finishes vectors of eight columns, the same columns in several rows.
  constexpr int kVectors = Shape::kTileN / 8, kRowStep = Shape::kThreads / kVectors;
  constexpr int kAhead = Shape::kTileM / kRowStep < 4 ? Shape::kTileM / kRowStep : 4;
  const int vector = thread % kVectors, ownRow = thread / kVectors, ownColumn = n0 + vector * 8;
  const auto isInside = [&](int t) { return t < Shape::kTileM && m0 + t < p.m && ownColumn < p.n; };
  // The residuals of its next rows: their loads would otherwise wait for the stores before them.
  Pairs<T> residuals[kAhead];
#pragma unroll
  for (int i = 0; i < kAhead; ++i) {
    const int t = ownRow + i * kRowStep;
    residuals[i] = residualOf<kForm>(p, isInside(t), int64_t(m0 + t), ownColumn);
  }

  waitForCopies<0>();
  __syncthreads(); // All operands have been read, so the epilogue may reuse their memory.
  T *const staged = reinterpret_cast<T *>(memory);
  stageSums<T, kForm, Shape>(staged, sums, biases, scales, warpM + lane / 4, warpN + lane % 4 * 2);
  __syncthreads();

  // All lanes of a warp call epilogue().
#pragma unroll 1
  for (int t = ownRow; t < Shape::kTileM; t += kRowStep) {
    const Pairs<T> residual = residuals[0];
#pragma unroll
    for (int i = 1; i < kAhead; ++i)
      residuals[i - 1] = residuals[i];
    const int later = t + kAhead * kRowStep;
    residuals[kAhead - 1] = residualOf<kForm>(p, isInside(later), int64_t(m0 + later), ownColumn);
    epilogue<kForm>(p, isInside(t), int64_t(m0 + t), ownColumn,
                    loadPairs(staged + t * Shape::kResultPitch + vector * 8), residual);
  }
}

template <class T, class Shape, GemmForm kForm>
Result<KernelParameters> bindMma(const LaunchView &launch, const LaunchAddresses &at) {
  const GemmLaunch l = *checkGemm(launch, kDTypeOf<T>, Shape::kTile);
  MmaParameters<T> p{};
  setRowParameters<kForm>(p, launch, at, l);
  p.x = static_cast<const T *>(at.reads[kGemmX]);
  p.w = static_cast<const T *>(at.reads[kGemmW]);
  p.xStride = l.xStride;
  p.wStride = l.wStride;
  return KernelParameters(p);
}

} // namespace
} // namespace cgc

#define CGC_MMA_INSTANCE(NAME, T, FORM, N, M)                                                      \
  CGC_KERNEL_OF(NAME##_##N##x##M##_mma,                                                            \
                (gemmMma<T, MmaShape<N, M, GemmForm::FORM>, GemmForm::FORM>),                      \
                (bindMma<T, MmaShape<N, M, GemmForm::FORM>, GemmForm::FORM>))
