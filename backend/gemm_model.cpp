// Estimates the time of each tile, in order to rank the kernels of a GEMM. The model and its
// constants were fitted to the times of all tiles that a tuner measured on an H200 in the towers of
// ViT-L-14, at 1, 2, 4 and 16 texts and at 1, 2 and 8 images (docs/log/2026-11-22-tile-model.md),
// so that the tile it ranks first is the fastest one or nearly so. That was before epilogues became
// shorter and before gemm_norm had tiles of 256 rows, of which 64 images were measured. `cgc tune`
// measures the first of its ranking instead.
#include "backend/gemm_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace cgc::backend {
namespace {

constexpr uint32_t kSharedOfHalf = kGemmMaxSharedBytes / 2;

// All times are in clock cycles.

/// Latency until the first operands arrive.
constexpr double kLatency = 1450;

/// Time of the tensor cores for 64 of K and this many accumulators, at 4096 operations a clock.
double mmaCycles(double accumulators) {
  return accumulators * 64 * 2 / 4096;
}
/// Time in which an SM loads 64 columns of this many rows, at 54 bytes a clock.
double loadCycles(double rows) {
  return rows * 64 * 2 / 54;
}

/// The number of wide clusters that a GPU can hold at a time, scaled from 15 on an H200 with 132
/// SMs. The bind function of the kernel queries the GPU that a plan is loaded on.
uint32_t wideClustersOf(int64_t multiprocessors) {
  return std::max(uint32_t(multiprocessors * 15 / 132), 1u);
}

double estimatePersistent(const GemmTile &tile, const GemmProblem &p, int64_t multiprocessors) {
  const uint32_t ctas = tile.grid(p.m, p.n, uint32_t(multiprocessors))[0], pairs = ctas / 2;
  const auto [tilesM, tilesN] = tile.tilesOfPairs(p.m, p.n);
  const double waves =
      tile.hasWideClusters()
          ? double(tile.schedule(p.m, p.n, ctas, wideClustersOf(multiprocessors)).waves)
          : std::ceil(double(tilesM) * double(tilesN) / pairs);
  const int64_t steps = (p.k + 63) / 64;
  const double epilogue = 1500 + 8.0 * tile.tileM;
  const double step =
      std::max(mmaCycles(double(tile.tileN) * tile.tileM),
               loadCycles(tile.tileN + tile.tileM / 2.0)); // A pair at least shares X.
  return waves * (double(steps) * step + epilogue);
}

/// K steps of each CTA of a split.
uint32_t stepsOf(const GemmTile &tile, int64_t k) {
  const uint32_t step = tile.stepK();
  return uint32_t(((k + step - 1) / step + tile.splitK - 1) / tile.splitK);
}

/// The time of an mma kernel on an A100, by its data sheet: 1024 multiplications a clock, 128 bytes
/// a clock of shared memory, and about 40 from the L2 cache. It is not fitted to measurements.
double estimateMma(const GemmTile &tile, uint32_t stages, const GemmProblem &p,
                   int64_t multiprocessors) {
  constexpr double kMemoryLatency = 700, kBarrier = 100;
  const double area = double(tile.tileN) * tile.tileM, rows = tile.tileN + tile.tileM;
  const auto grid = tile.grid(p.m, p.n, uint32_t(multiprocessors));
  const double ctas = double(grid[0]) * grid[1], sms = double(multiprocessors);
  // The CTAs on an SM, by its memory and registers.
  const double most = std::floor(std::min((164 << 10) / (tile.sharedBytes(stages) + 2048.0),
                                          65536 / (area + tile.threads() * 96.0)));
  const double bytes = tile.stepK() * 2.0, multiply = area * tile.stepK() / 1024;
  // Each warp reads its rows of both operands from shared memory.
  const double shared =
      (rows + tile.tileN * tile.warpsM() + tile.tileM * tile.warpsN()) * bytes / 128;
  const double epilogue = 800 + area / 8;
  const auto round = [&](double together) {
    const double step = std::max({together * std::max({multiply, shared, rows * bytes / 40}),
                                  multiply + kBarrier, kMemoryLatency / (stages - 1)});
    return stepsOf(tile, p.k) * step + together * epilogue;
  };
  const double full = std::floor(ctas / (most * sms)), rest = ctas - full * most * sms;
  return full * round(most) + (rest > 0 ? round(std::ceil(rest / sms)) : 0) + kLatency;
}

double estimate(const GemmTile &tile, uint32_t stages, const GemmProblem &p,
                int64_t multiprocessors) {
  if (tile.persistent)
    return estimatePersistent(tile, p, multiprocessors);
  if (tile.mma)
    return estimateMma(tile, stages, p, multiprocessors);
  const double area = double(tile.tileN) * tile.tileM;
  const auto grid = tile.grid(p.m, p.n, uint32_t(multiprocessors));
  const double ctas = double(grid[0]) * grid[1];
  // Clusters of 3 and more CTAs do not fill every GPC.
  const double sms = std::round(double(multiprocessors) * (tile.splitK < 3 ? 1 : 125.0 / 132));
  const bool fitsHalf = tile.sharedBytes(stages) <= kSharedOfHalf;

  // The mainloops of `together` CTAs on an SM. The first stages of W were loaded ahead; later ones
  // also wait for memory, whose latency the ring does not cover.
  const uint32_t steps = stepsOf(tile, p.k);
  const uint32_t early = std::min(steps, stages);
  const auto mainloop = [&](double together) {
    const double multiply = mmaCycles(area) * together;
    return early * std::max(multiply, loadCycles(tile.tileM) * together) +
           (steps - early) * std::max({multiply, loadCycles(tile.tileN + tile.tileM) * together,
                                       kLatency / (stages - 1)});
  };
  const double epilogue = area / 128 * 22 + (tile.splitK > 1 ? 1100 + 370.0 * tile.splitK : 1000);

  const bool fitsTwoPerSm = tile.tileN <= 128 && tile.tileM <= 136 && fitsHalf;
  if (fitsTwoPerSm && ctas > sms) { // Two CTAs on an SM hide part of each other's epilogues.
    const auto round = [&](double together) {
      return mainloop(together) + together * epilogue * 0.6;
    };
    const double full = std::floor(ctas / (2 * sms)), rest = ctas - full * 2 * sms;
    const double last = rest > 0 ? round(std::ceil(rest / sms)) : 0;
    return full * round(2) + last * (full > 0 ? 0.9 : 1) + kLatency;
  }
  // CTAs of a cluster that fit on one SM are placed there, while other SMs are idle.
  const bool shareSm = tile.splitK > 1 && fitsHalf && ctas > sms / 4 && ctas <= sms;
  const double rounds = std::ceil(ctas / sms);
  return rounds * (mainloop(shareSm ? 2 : 1) + epilogue + kLatency * (rounds > 1 ? 1.8 : 1));
}

} // namespace

double gemmClocks(const GemmProblem &problem, const GemmKernelChoice &choice,
                  int64_t multiprocessors) {
  return estimate(*choice.kernel.tile, choice.stages, problem, multiprocessors);
}

std::vector<GemmKernelChoice> rankedKernels(const GemmProblem &p, const GpuTarget &gpu) {
  std::vector<std::pair<double, GemmKernelChoice>> choices;
  for (const GemmTile &tile : p.epilogue.windows   ? convTiles()
                              : p.epilogue.normEps ? gemmNormTiles()
                                                   : gemmTiles()) {
    if ((p.m <= kNonPersistentMaxM && tile.persistent) || tile.mma == (gpu.arch == Arch::Sm90a))
      continue;
    const uint32_t all = tile.mma ? kMmaMaxSharedBytes : kGemmMaxSharedBytes;
    for (const uint32_t memory : {all / 2, all}) {
      if (tile.persistent && memory != all)
        continue; // Its registers allow one CTA on an SM.
      const uint32_t steps = stepsOf(tile, p.k);
      const uint32_t stages = tile.stagesIn(memory, std::max(steps, 2u));
      const bool isDuplicate = !choices.empty() && choices.back().second.kernel.tile == &tile &&
                               choices.back().second.stages == stages;
      if (stages < 2 || !tile.takes(p.k) || isDuplicate)
        continue;
      choices.push_back({estimate(tile, stages, p, gpu.multiprocessors),
                         {{p.dtype, &tile}, stages, uint32_t(gpu.multiprocessors)}});
    }
  }
  std::ranges::stable_sort(choices, {}, &std::pair<double, GemmKernelChoice>::first);
  std::vector<GemmKernelChoice> sorted;
  for (const auto &[clocks, choice] : choices)
    sorted.push_back(choice);
  return sorted;
}

} // namespace cgc::backend
