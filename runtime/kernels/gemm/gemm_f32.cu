// gemm_f32_* and gemm_sgd_f32_*: a GEMM in f32, for products so small that they are bound by
// latency. A CTA, or a split-K cluster, computes 64 x 64 of y. Its two warpgroups take turns at the
// steps of K, each with a ring that cp.async fills.
//
// Each operand is split in two (3xTF32): the big part is its upper 19 bits, which is all that wgmma
// reads, and the small part is the remainder, rounded to TF32. Tensor cores round sums toward
// zero, so that the products of each step are added to those before on CUDA cores (Ootomo and
// Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing the FP32
// theoretical peak performance", 2022). The results are as exact as those of f32 products and sums,
// but infinities become NaN. The sums of the cluster's CTAs are added in a fixed order.
// The epilogue of gemm_sgd_f32_* updates a weight by y, and a bias by the sums of the rows of a.
#include "runtime/kernels/gemm/gemm_f32.h"

#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/sm80/async_copy.cuh"
#include "runtime/kernels/sm90/hopper.cuh"
#include "runtime/kernels/sm90/wgmma.cuh"

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
  bool mnMajor;
};

struct GemmF32Parameters {
  GemmF32Matrix a, b;
  const float *bias; ///< Or null.
  float *y, *sums;   ///< The sums may be null.
  int64_t yStride;
  int k;
  // Of gemm_sgd_f32_*, for which y is the new weight and the sums are the new bias.
  const float *lr, *weight, *oldBias;
  const int64_t *steps;
  int64_t *newSteps; ///< Or null.
  float weightDecay;
};

constexpr int kTile = int(kGemmF32Tile), kStep = int(kGemmF32Step), kStages = int(kGemmF32Stages),
              kThreads = int(kGemmF32Threads), kWarpgroup = 128,
              kWarpgroups = kThreads / kWarpgroup, kLineVectors = kTile / 4,
              kStepVectors = kTile * kStep / 4, kCopies = kStepVectors / kWarpgroup;
static_assert(kStep * sizeof(float) == 128 && kWarpgroups == 2 && kCopies == 4);

/// This thread among those of its warpgroup.
__device__ int ownThread() {
  return int(threadIdx.x) % kWarpgroup;
}

/// A step of an operand in shared memory, in rows of 128 bytes with TMA's swizzle.
struct StepTile {
  float4 vectors[kStepVectors];

  __device__ float4 &at(int row, int vector) { return vectors[row * 8 + (vector ^ row % 8)]; }
  /// A step whose elements lie side by side along rows arrives as [k][row]. The vectors of a line
  /// are permuted so that a column of vectors is in all banks.
  __device__ float4 &arrived(int k, int vector) {
    return vectors[k * kLineVectors + (vector ^ k / 4 % 8)];
  }
};
struct Step {
  StepTile a, b;
};
/// The memory of a warpgroup.
struct Ring {
  Step big[kStages], small; ///< The small parts are those of the step that is multiplied.
};

/// Shared memory. The rings are used again when all steps are multiplied. The parts of the
/// other CTAs of the cluster are in the order of their ranks.
template <int kSplitK> struct Shared {
  static constexpr int kRows = int(gemmF32ShareRows(kSplitK)),
                       kOthers = kSplitK > 1 ? kSplitK - 1 : 1;

  union {
    Ring rings[kWarpgroups];
    struct {
      float4 tile[kTile * kLineVectors]; ///< Sums that a warpgroup leaves to the other one.
      float4 own[kRows * kLineVectors];  ///< This CTA's sums for its rows of the tile.
      float rowSums[kWarpgroups * kStep / 4][kTile]; ///< Of the vectors of a step, one by one.
    };
  };
  float4 received[kOthers][kRows * kLineVectors];
  float receivedRowSums[kOthers][kTile]; ///< In the first CTA.
  uint64_t allReceived;                  ///< The barrier of both.
};

/// One thread's part of the copies of an operand to shared memory.
class Copies {
public:
  /// Begins at row row0 and column k0 of `matrix`, whose columns end at kEnd. Skips the steps of
  /// the other warpgroup.
  __device__ Copies(const GemmF32Matrix &matrix, int row0, int k0, int kEnd)
      : mnMajor_(matrix.mnMajor) {
    const int perLine = (mnMajor_ ? kTile : kStep) / 4;
    line_ = ownThread() / perLine;
    vector_ = ownThread() % perLine;
    lines_ = kWarpgroup / perLine;
    const int row = row0 + (mnMajor_ ? vector_ * 4 : line_);
    const int k = k0 + (mnMajor_ ? line_ : vector_ * 4);
    from_ = matrix.data + (mnMajor_ ? k * matrix.stride + row : row * matrix.stride + k);
    copyStride_ = lines_ * matrix.stride;
    stepStride_ = kWarpgroups * (mnMajor_ ? kStep * matrix.stride : kStep);
    left_ = kEnd - k;
    if (mnMajor_)
      copies_ = row < matrix.rows ? kCopies : 0;
    else
      copies_ = (matrix.rows - row + lines_ - 1) / lines_;
  }

  /// Starts the copies of the next step. Rows and columns behind the last are 0.
  __device__ void start(StepTile &tile) {
#pragma unroll
    for (int c = 0; c < kCopies; ++c) {
      const int line = line_ + c * lines_;
      copyAsync(mnMajor_ ? &tile.arrived(line, vector_) : &tile.at(line, vector_),
                from_ + c * copyStride_, c < copies_ && left_ > (mnMajor_ ? c * lines_ : 0));
    }
    left_ -= kWarpgroups * kStep;
    from_ += stepStride_;
  }

private:
  const float *from_;
  int64_t copyStride_, stepStride_; ///< Elements to the next copy of a step, and to the next step.
  int line_, vector_;               ///< Of the first copy.
  int lines_;                       ///< Between two copies.
  int left_;                        ///< Columns from that of the first copy to the last one.
  int copies_;                      ///< Those within the rows.
  bool mnMajor_;
};

/// The small part of a 3xTF32 split: what wgmma does not read of x, rounded to nearest. Adding half
/// of the last place carries into the bits that count.
__device__ float smallPart(float x) {
  const float remainder = x - __uint_as_float(__float_as_uint(x) & 0xffffe000);
  return __uint_as_float(__float_as_uint(remainder) + 0x1000);
}

/// One thread's part of a step of an operand: four rows, and four columns of each.
struct Block {
  float4 rows[4];

  /// Vector `column` of each row.
  __device__ static int column() { return ownThread() % 8; }
  __device__ static int row(bool mnMajor, int i) {
    const int first = ownThread() / 8;
    return mnMajor ? first * 4 + i : first + i * (kTile / 4);
  }

  __device__ Block(bool mnMajor, StepTile &tile) {
    if (mnMajor) {
      float4 lines[4];
#pragma unroll
      for (int j = 0; j < 4; ++j)
        lines[j] = tile.arrived(column() * 4 + j, ownThread() / 8);
      rows[0] = make_float4(lines[0].x, lines[1].x, lines[2].x, lines[3].x);
      rows[1] = make_float4(lines[0].y, lines[1].y, lines[2].y, lines[3].y);
      rows[2] = make_float4(lines[0].z, lines[1].z, lines[2].z, lines[3].z);
      rows[3] = make_float4(lines[0].w, lines[1].w, lines[2].w, lines[3].w);
      return;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
      rows[i] = tile.at(row(false, i), column());
  }

  __device__ float4 rowSums() const {
    const auto sumOf = [](float4 v) { return (v.x + v.y) + (v.z + v.w); };
    return make_float4(sumOf(rows[0]), sumOf(rows[1]), sumOf(rows[2]), sumOf(rows[3]));
  }

  /// Stores the operands of wgmma. Rows that arrived as rows are in place.
  __device__ void store(bool mnMajor, StepTile &big, StepTile &small) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float4 v = rows[i];
      if (mnMajor)
        big.at(row(true, i), column()) = v;
      small.at(row(mnMajor, i), column()) =
          make_float4(smallPart(v.x), smallPart(v.y), smallPart(v.z), smallPart(v.w));
    }
  }
};

/// Starts products = a b^T for a step, the smallest products first.
__device__ void multiplyStep(float (&products)[32], const Step &big, const Step &small) {
  const uint64_t a = tileDescriptor(&big.a), b = tileDescriptor(&big.b),
                 smallA = tileDescriptor(&small.a), smallB = tileDescriptor(&small.b);
  const auto multiply = [&](uint64_t rows, uint64_t columns, bool accumulate) {
#pragma unroll
    for (int k = 0; k < kStep / 8; ++k)
      Wgmma<Tf32, kTile>::run(products, descriptorAt(rows, k * 32), descriptorAt(columns, k * 32),
                              accumulate || k > 0);
  };
  wgmmaFence();
  multiply(smallA, b, false);
  multiply(a, smallB, true);
  multiply(a, b, true);
  wgmmaCommit();
}

__device__ float4 add(float4 x, float4 y) {
  return make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}
template <int kCount> __device__ float sumOfColumn(const float (&rows)[kCount][kTile], int column) {
  float sum = rows[0][column];
#pragma unroll
  for (int i = 1; i < kCount; ++i)
    sum += rows[i][column];
  return sum;
}

/// A warpgroup's sums: of its part of the tile, in the layout of wgmma, and of each of this
/// thread's rows of blocks of a.
struct Sums {
  float tile[32] = {};
  float4 rows = {};
};

/// Adds up the steps of this warpgroup, which are every second one from `first` on.
__device__ Sums sumSteps(const GemmF32Parameters &p, Ring &ring, int m0, int n0, int first,
                         int steps) {
  Copies copiesA(p.a, m0, first * kStep, p.k), copiesB(p.b, n0, first * kStep, p.k);
  const auto start = [&](int step) {
    if (step < steps) {
      copiesA.start(ring.big[step % kStages].a);
      copiesB.start(ring.big[step % kStages].b);
    }
    commitCopies();
  };
  const auto syncWarpgroup = [] { syncThreads(1 + int(threadIdx.x) / kWarpgroup, kWarpgroup); };
#pragma unroll
  for (int s = 0; s < kStages; ++s)
    start(s);
  Sums sums;
#pragma unroll 1
  for (int s = 0; s < steps; ++s) {
    Step &big = ring.big[s % kStages];
    waitForCopies<kStages - 1>();
    syncWarpgroup();
    const auto prepare = [&](bool mnMajor, StepTile &big, StepTile &small) {
      const Block block(mnMajor, big);
      if (mnMajor)
        syncWarpgroup(); // All have read the lines that arrived.
      block.store(mnMajor, big, small);
      return block.rowSums();
    };
    sums.rows = add(sums.rows, prepare(p.a.mnMajor, big.a, ring.small.a));
    prepare(p.b.mnMajor, big.b, ring.small.b);
    fenceShared();
    syncWarpgroup();
    float products[32];
    multiplyStep(products, big, ring.small);
    wgmmaWait<0>();
#pragma unroll
    for (int i = 0; i < 32; ++i)
      sums.tile[i] += products[i];
    if (s + 1 < steps) {
      syncWarpgroup(); // All have multiplied the step, whose memory is next.
      start(s + kStages);
    }
  }
  return sums;
}

/// The index of a vector of a row of y in shared memory, permuted so that the stores of a warp use
/// all banks.
__device__ int shareVector(int row, int vector) {
  return row * kLineVectors + (vector ^ row % 4 * 2);
}

/// A vector of a CTA's share of a tile.
struct Place {
  int rowOfShare, vector;
  int64_t row;
  int column; ///< Of y, as the row.
  bool isInTile;
};

/// A step of SGD.
__device__ float updated(const GemmF32Parameters &p, float lr, float value, float gradient) {
  if (p.weightDecay != 0)
    gradient += p.weightDecay * value;
  return value - lr * gradient;
}

template <int kSplitK, bool kUpdates>
__global__ void __launch_bounds__(kThreads, 2) __cluster_dims__(kSplitK, 1, 1)
    gemmF32(const __grid_constant__ GemmF32Parameters p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  static_assert(sizeof(Shared<kSplitK>) <= kGemmF32SharedBytes);
  extern __shared__ __align__(1024) std::byte memory[];
  Shared<kSplitK> &shared = *reinterpret_cast<Shared<kSplitK> *>(memory);
  constexpr int kRows = Shared<kSplitK>::kRows;
  const int rank = kSplitK > 1 ? int(clusterRank()) : 0;
  const int n0 = int(blockIdx.x) / kSplitK * kTile, m0 = int(blockIdx.y) * kTile;
  const int allSteps = (p.k + kStep - 1) / kStep;
  const int first = allSteps * rank / kSplitK, steps = allSteps * (rank + 1) / kSplitK - first;
  const int thread = int(threadIdx.x), warpgroup = thread / kWarpgroup;
  const bool sumsRows = p.sums && n0 == 0;
  griddepLaunchDependents();
  if constexpr (kSplitK > 1) {
    if (thread == 0) {
      const int rows = min(kRows, kTile - rank * kRows) + (sumsRows && rank == 0);
      initBarrier(&shared.allReceived, 1);
      fenceBarrierInit();
      arriveExpectTx(&shared.allReceived, (kSplitK - 1) * rows * kTile * sizeof(float));
    }
    __syncwarp();
    syncClusterRelaxed(); // All CTAs have started and can be sent sums.
  }
  griddepWait();
  Sums sums = sumSteps(p, shared.rings[warpgroup], m0, n0, first + warpgroup,
                       (steps + 1 - warpgroup) / kWarpgroups);
  // A thread's vectors of this CTA's share of y: where they are, and the weight there.
  constexpr int kVectors = (kRows * kLineVectors + kThreads - 1) / kThreads;
  const auto placeOf = [&](int vector) {
    const int i = thread + vector * kThreads, row = i / kLineVectors;
    return Place{row, i % kLineVectors, m0 + rank * kRows + row, n0 + i % kLineVectors * 4,
                 row < kRows && rank * kRows + row < kTile};
  };
  const auto isInside = [&](const Place &at) {
    return at.isInTile && at.row < p.a.rows && at.column < p.b.rows;
  };
  float4 weight[kVectors];
  if constexpr (kUpdates)
#pragma unroll
    for (int v = 0; v < kVectors; ++v)
      if (const Place at = placeOf(v); isInside(at))
        weight[v] = *reinterpret_cast<const float4 *>(p.weight + at.row * p.yStride + at.column);
  __syncthreads(); // All steps are multiplied.

  // A thread's sums are of the rows lane / 4 and lane / 4 + 8 of the 16 of its warp, and of two
  // columns of each 8. It leaves one of the rows to the other warpgroup.
  const int lane = thread % 32;
  const auto rowOf = [&](int half) { return thread / 32 % 4 * 16 + half * 8 + lane / 4; };
  const auto pairOfSums = [&](int n, int half) {
    const float *const pair = sums.tile + n * 4;
    return half ? make_float2(pair[2], pair[3]) : make_float2(pair[0], pair[1]);
  };
  const auto pairOf = [&](float4 *rows, int row, int n) {
    return reinterpret_cast<float2 *>(rows + shareVector(row, n * 2 + lane % 4 / 2)) + lane % 2;
  };
#pragma unroll
  for (int n = 0; n < kTile / 8; ++n) {
    *pairOf(shared.tile, rowOf(1 - warpgroup), n) = pairOfSums(n, 1 - warpgroup);
  }
  if (sumsRows) {
    const float ofRows[] = {sums.rows.x, sums.rows.y, sums.rows.z, sums.rows.w};
#pragma unroll
    for (int i = 0; i < 4; ++i)
      shared.rowSums[warpgroup * (kStep / 4) + Block::column()][Block::row(p.a.mnMajor, i)] =
          ofRows[i];
  }
  __syncthreads();
  const int row = rowOf(warpgroup), owner = row / kRows;
  float4 *const share =
      owner == rank ? shared.own : shared.received[rank < owner ? rank : rank - 1];
#pragma unroll
  for (int n = 0; n < kTile / 8; ++n) {
    const float2 own = pairOfSums(n, warpgroup), other = *pairOf(shared.tile, row, n);
    const float2 value = make_float2(own.x + other.x, own.y + other.y);
    float2 *const to = pairOf(share, row % kRows, n);
    if (kSplitK > 1 && owner != rank)
      sendToCta(addressInCta(to, uint32_t(owner)), value,
                addressInCta(&shared.allReceived, uint32_t(owner)));
    else
      *to = value;
  }
  if (sumsRows && rank > 0 && thread < kTile)
    sendToCta(addressInCta(&shared.receivedRowSums[rank - 1][thread], 0),
              sumOfColumn(shared.rowSums, thread), addressInCta(&shared.allReceived, 0));
  __syncthreads();
  if constexpr (kSplitK > 1)
    waitBarrier(&shared.allReceived, 0);

  // Each CTA of the cluster adds up and stores its share of the rows.
  const float lr = kUpdates ? *p.lr : 0;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const Place at = placeOf(v);
    if (!isInside(at))
      continue;
    const int vector = shareVector(at.rowOfShare, at.vector);
    float4 sum = shared.own[vector];
#pragma unroll
    for (int r = 0; r < kSplitK - 1; ++r)
      sum = add(sum, shared.received[r][vector]);
    if constexpr (kUpdates) {
      const float4 w = weight[v];
      sum = make_float4(updated(p, lr, w.x, sum.x), updated(p, lr, w.y, sum.y),
                        updated(p, lr, w.z, sum.z), updated(p, lr, w.w, sum.w));
    } else if (p.bias) {
      sum = add(sum, *reinterpret_cast<const float4 *>(p.bias + at.column));
    }
    *reinterpret_cast<float4 *>(p.y + at.row * p.yStride + at.column) = sum;
  }
  if (sumsRows && rank == 0 && thread < kTile && m0 + thread < p.a.rows) {
    float sum = sumOfColumn(shared.rowSums, thread);
#pragma unroll
    for (int r = 0; r < kSplitK - 1; ++r)
      sum += shared.receivedRowSums[r][thread];
    if constexpr (kUpdates)
      sum = updated(p, lr, p.oldBias[m0 + thread], sum);
    p.sums[m0 + thread] = sum;
  }
  if (kUpdates && p.newSteps && blockIdx.x == 0 && blockIdx.y == 0 && thread == 0)
    *p.newSteps = *p.steps + 1;
#endif
}

GemmF32Matrix matrixOf(const LaunchAddresses &at, size_t read, const GemmF32Launch::Matrix &layout,
                       int64_t rows) {
  return {static_cast<const float *>(at.reads[read]), layout.stride, int(rows), layout.mnMajor};
}

template <int64_t kSplitK>
Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  const GemmF32Launch l = *checkGemmF32(launch, kSplitK);
  return KernelParameters(GemmF32Parameters{
      .a = matrixOf(at, kGemmF32A, l.a, l.m),
      .b = matrixOf(at, kGemmF32B, l.b, l.n),
      .bias = static_cast<const float *>(at.reads[kGemmF32Bias]),
      .y = static_cast<float *>(at.writes[kGemmF32Y]),
      .sums = static_cast<float *>(at.writes[kGemmF32Sums]),
      .yStride = l.yStride,
      .k = int(l.k),
  });
}

template <int64_t kSplitK>
Result<KernelParameters> bindSgd(const LaunchView &launch, const LaunchAddresses &at) {
  const GemmF32Launch l = *checkGemmSgdF32(launch, kSplitK);
  return KernelParameters(GemmF32Parameters{
      .a = matrixOf(at, kGemmSgdA, l.a, l.m),
      .b = matrixOf(at, kGemmSgdB, l.b, l.n),
      .y = static_cast<float *>(at.writes[kGemmSgdNewWeight]),
      .sums = static_cast<float *>(at.writes[kGemmSgdNewBias]),
      .yStride = l.yStride,
      .k = int(l.k),
      .lr = static_cast<const float *>(at.reads[kGemmSgdLr]),
      .weight = static_cast<const float *>(at.reads[kGemmSgdWeight]),
      .oldBias = static_cast<const float *>(at.reads[kGemmSgdBias]),
      .steps = static_cast<const int64_t *>(at.reads[kGemmSgdSteps]),
      .newSteps = static_cast<int64_t *>(at.writes[kGemmSgdNewSteps]),
      .weightDecay = float(launch.floats[0]),
  });
}

} // namespace

CGC_KERNEL_OF(gemm_f32_1, (gemmF32<1, false>), bind<1>)
CGC_KERNEL_OF(gemm_f32_2, (gemmF32<2, false>), bind<2>)
CGC_KERNEL_OF(gemm_f32_3, (gemmF32<3, false>), bind<3>)
CGC_KERNEL_OF(gemm_f32_4, (gemmF32<4, false>), bind<4>)
CGC_KERNEL_OF(gemm_f32_5, (gemmF32<5, false>), bind<5>)
CGC_KERNEL_OF(gemm_f32_6, (gemmF32<6, false>), bind<6>)
CGC_KERNEL_OF(gemm_f32_7, (gemmF32<7, false>), bind<7>)
CGC_KERNEL_OF(gemm_f32_8, (gemmF32<8, false>), bind<8>)
CGC_KERNEL_OF(gemm_sgd_f32_1, (gemmF32<1, true>), bindSgd<1>)
CGC_KERNEL_OF(gemm_sgd_f32_2, (gemmF32<2, true>), bindSgd<2>)
CGC_KERNEL_OF(gemm_sgd_f32_3, (gemmF32<3, true>), bindSgd<3>)
CGC_KERNEL_OF(gemm_sgd_f32_4, (gemmF32<4, true>), bindSgd<4>)
CGC_KERNEL_OF(gemm_sgd_f32_5, (gemmF32<5, true>), bindSgd<5>)
CGC_KERNEL_OF(gemm_sgd_f32_6, (gemmF32<6, true>), bindSgd<6>)
CGC_KERNEL_OF(gemm_sgd_f32_7, (gemmF32<7, true>), bindSgd<7>)
CGC_KERNEL_OF(gemm_sgd_f32_8, (gemmF32<8, true>), bindSgd<8>)

} // namespace cgc
