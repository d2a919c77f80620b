// The ways to compute an attention, and their launches.
#include "backend/attention.h"

#include "backend/kernels.h"
#include "runtime/kernels/attention/attention.h"
#include "runtime/kernels/attention/attention_f32.h"
#include "runtime/kernels/attention/attention_resident_kv.h"

#include <algorithm>
#include <climits>
#include <optional>

namespace cgc::backend {
namespace {

uint32_t ceilDivide(int64_t count, int64_t size) {
  return uint32_t((count + size - 1) / size);
}

/// The warps of a CTA of attention, in groups of `splits`. Each group computes 16 queries and
/// splits the keys.
struct Warps {
  int64_t all, splits;
};

/// The fastest division of the work. While SMs are idle, splitting the keys between warps shortens
/// the work and small CTAs spread it. Otherwise a CTA takes as many queries as there are, so that
/// keys are fetched once.
Warps warpsFor(const AttentionProblem &p, int64_t sms) {
  const int64_t rows = ceilDivide(p.queries, kAttentionQueries);
  if (p.batch * p.heads * rows <= 3 * sms) {
    const int64_t splits = p.keys > kAttentionChunk ? 2 : 1;
    return {std::min<int64_t>(2, rows) * splits, splits};
  }
  // As few slices of the queries as possible, with the warps spread evenly over them.
  const int64_t slices = ceilDivide(rows, kAttentionMaxWarps);
  return {ceilDivide(rows, slices), 1};
}

AttentionChoice chunked(const AttentionProblem &p, const Kernel *kernel, int64_t sms) {
  const Warps warps = warpsFor(p, sms);
  return {.kernel = kernel,
          .grid = {ceilDivide(p.queries, warps.all / warps.splits * kAttentionQueries),
                   uint32_t(p.heads), uint32_t(p.batch)},
          .threads = uint32_t(warps.all * 32),
          .sharedBytes =
              attentionSharedBytes(p.keys, attentionColumns(p.width), warps.all, warps.splits),
          .splits = warps.splits};
}

AttentionChoice splitKv(const AttentionProblem &p) {
  return {.kernel = splitKvKernel(p.dtype),
          .grid = {uint32_t(kSplitKvShape.items(p.batch * p.heads, p.queries)), 1, 1},
          .threads = uint32_t(kSplitKvShape.groups * 128),
          .sharedBytes = kSplitKvSharedBytes};
}

/// One CTA for each item, at most `ctas`.
AttentionChoice residentKv(const AttentionProblem &p, const ResidentKvShape &shape, int64_t ctas) {
  const int64_t items = shape.items(p.batch * p.heads, p.queries);
  return {.kernel = residentKvKernel(p.dtype, p.keys),
          .grid = {uint32_t(std::min(items, ctas)), 1, 1},
          .threads = uint32_t(shape.groups * 128),
          .sharedBytes = shape.sharedBytes(p.queries, p.keys),
          .tiles = shape.tiles,
          .stages = shape.stages};
}

AttentionChoice inF32(const AttentionProblem &p) {
  const int64_t columns = attentionColumns(p.width);
  return {
      .kernel = attentionF32Kernel(columns),
      .grid = {ceilDivide(p.queries, kAttentionF32Queries), uint32_t(p.heads), uint32_t(p.batch)},
      .threads = kAttentionF32Threads,
      .sharedBytes = attentionF32SharedBytes(columns)};
}

/// The launch of attention_resident_kv that is the fastest, if it is faster than attention: one
/// tile for each CTA while SMs are idle; otherwise each CTA takes whole heads, so that keys are
/// fetched once. For many heads of up to 64 keys the chunked kernel is faster.
std::optional<AttentionChoice> fastestResidentKv(const AttentionProblem &p, bool smsAreIdle,
                                                 int64_t sms) {
  if (smsAreIdle)
    return residentKv(p, {1, 1, 1}, sms);
  if (p.keys <= kResidentKvQueries)
    return std::nullopt;
  const int64_t tiles = residentKvTiles(p.queries);
  // Two CTAs of up to two warpgroups and few keys fit on an SM at once: registers and shared memory
  // suffice. One fetches while the other computes.
  if (p.keys <= 128 && tiles <= 2)
    return residentKv(p, {tiles, tiles, 1}, INT32_MAX);
  return residentKv(p, {tiles, std::min(tiles, kResidentKvMaxGroups), 2}, sms);
}

} // namespace

std::vector<AttentionChoice> attentionCandidates(const AttentionProblem &p, const GpuTarget &gpu) {
  std::vector<AttentionChoice> candidates;
  const auto add = [&](const AttentionChoice &choice) {
    const bool runs =
        choice.kernel && (gpu.arch == Arch::Sm90a || !(choice.kernel->traits & kHopper));
    if (runs)
      candidates.push_back(choice);
  };
  if (p.dtype == DType::F32) {
    add(inF32(p));
    return candidates;
  }
  if (!p.masked) {
    const bool smsAreIdle =
        p.batch * p.heads * ceilDivide(p.queries, kResidentKvQueries) <= gpu.multiprocessors;
    if (smsAreIdle && !p.causal && fitsSplitKv(p.keys))
      add(splitKv(p));
    if (residentKvKeys(p.keys) != 0)
      if (const auto choice = fastestResidentKv(p, smsAreIdle, gpu.multiprocessors))
        add(*choice);
  }
  const int64_t columns = attentionColumns(p.width);
  for (const bool useTma : {true, false})
    add(chunked(p, attentionKernel(p.dtype, columns, useTma), gpu.multiprocessors));
  return candidates;
}

KernelLaunch attentionLaunch(const AttentionProblem &p, const AttentionChoice &choice) {
  KernelLaunch launch = launchOf(*choice.kernel);
  std::ranges::copy(choice.grid, launch.grid);
  launch.block[0] = choice.threads;
  launch.sharedBytes = choice.sharedBytes;
  launch.ints =
      AttentionNumbers{p.batch, p.heads, p.queries, p.keys, p.causal}.ints(choice.kernel->ints);
  if (choice.splits > 0)
    launch.ints[kAttentionSplitsInt] = choice.splits;
  if (choice.stages > 0) {
    launch.ints[kResidentKvTilesInt] = choice.tiles;
    launch.ints[kResidentKvStagesInt] = choice.stages;
  }
  launch.floats = {p.scale};
  return launch;
}

} // namespace cgc::backend
