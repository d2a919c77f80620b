// cgc.attention_backward: one of cgc's own kernels on cuda.
#include "backend/kernels.h"
#include "backend/lowering.h"
#include "runtime/kernels/attention/attention.h"
#include "runtime/kernels/attention/attention_backward.h"
#include "runtime/kernels/gemm/gemm.h"

namespace cgc::backend {
namespace {

/// The view [B, H, rows, D] of a result [B, rows, H, D].
Place byHeads(Place place) {
  std::swap(place.sizes[1], place.sizes[2]);
  std::swap(place.strides[1], place.strides[2]);
  return place;
}

/// The views [B, H, rows, D] of the gradients of query, key and value.
llvm::SmallVector<Place, 3> gradientPlaces(const ir::Node &node, BucketBuilder &builder) {
  llvm::SmallVector<Place, 3> places;
  if (!node.arg("packed").as<bool>()) {
    for (const ir::Value &result : node.results())
      places.push_back(byHeads(builder.allocate(result)));
    return places;
  }
  Place part = builder.allocate(*node.result()); // [B, L, 3, H, D]
  const uint64_t bytes = static_cast<uint64_t>(part.strides[2]) * dtypeSize(part.dtype);
  part.sizes.erase(part.sizes.begin() + 2);
  part.strides.erase(part.strides.begin() + 2);
  for (int i = 0; i < 3; ++i, part.offset += bytes)
    places.push_back(byHeads(part));
  return places;
}

/// Dynamic shared memory that a CTA may have, in bytes.
int64_t largestSharedBytes(Arch arch) {
  return arch == Arch::Sm90a ? int64_t(kGemmMaxSharedBytes) : kAttentionMemory;
}

bool launchKernel(const std::vector<std::optional<Place>> &reads,
                  const std::vector<std::optional<Place>> &writes, bool isCausal, double scale,
                  BucketBuilder &builder) {
  const Place &query = *reads[1], &key = *reads[2];
  const int64_t width = query.sizes[3], queries = query.sizes[2], keys = key.sizes[2];
  const Kernel *kernel = attentionBackwardKernel(query.dtype, width);
  const int64_t bytes = attentionBackwardSharedBytes(queries, keys, width);
  if (!kernel || query.type().numElements() == 0 || key.type().numElements() == 0 ||
      bytes > largestSharedBytes(builder.arch()))
    return false;
  KernelLaunch launch = launchOf(*kernel);
  launch.grid[0] = static_cast<uint32_t>(query.sizes[1]);
  launch.grid[1] = static_cast<uint32_t>(query.sizes[0]);
  launch.block[0] = static_cast<uint32_t>(attentionBackwardWarps(queries, keys) * 32);
  launch.sharedBytes = static_cast<uint32_t>(bytes);
  launch.ints = AttentionNumbers{query.sizes[0], query.sizes[1], queries, keys, isCausal}.ints(5);
  launch.floats = {scale};
  return backend::launch(std::move(launch), {reads, writes}, builder);
}

} // namespace

Result<bool> launchAttentionBackward(const ir::Node &node, BucketBuilder &builder) {
  std::vector<std::optional<Place>> reads;
  for (llvm::StringRef name : {"grad_out", "query", "key", "value"})
    reads.emplace_back(builder.place(node.arg(name).value()));
  const auto places = gradientPlaces(node, builder);
  return launchKernel(reads, {places.begin(), places.end()}, node.arg("is_causal").as<bool>(),
                      *node.arg("scale").asNumber(), builder);
}

} // namespace cgc::backend
