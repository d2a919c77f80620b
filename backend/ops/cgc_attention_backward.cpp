// cgc.attention_backward: one of cgc's own kernels on cuda; else LibTorch's products and softmax,
// in f32 for 16 bits.
#include "backend/kernels.h"
#include "backend/ops/tensor_math.h"
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

/// The product of two batches of matrices, into `result` or a temporary.
Place product(const Place &a, const Place &b, BucketBuilder &builder,
              std::optional<Place> result = {}) {
  const auto batches = [&](const Place &place) {
    return *mergeLeading(densePlace(place, builder), 3);
  };
  const Place x = batches(a), z = batches(b);
  ir::Dims sizes = a.sizes;
  sizes.back() = b.sizes.back();
  Place to = result ? *result : builder.temporary(a.dtype, sizes);
  builder.callInto("aten::bmm", "out", {builder.tensor(x), builder.tensor(z)},
                   *mergeLeading(to, 3));
  return to;
}

/// The gradients by LibTorch, of dense operands in `dtype`.
void callLibTorch(llvm::ArrayRef<Place> reads, llvm::ArrayRef<Place> writes, DType dtype,
                  bool isCausal, double scale, BucketBuilder &builder) {
  TensorMath math(builder);
  llvm::SmallVector<Place, 4> dense;
  for (const Place &place : reads)
    dense.push_back(densePlace(math.converted(place, dtype), builder));
  const Place &grad = dense[0], &query = dense[1], &key = dense[2], &value = dense[3];
  const Place factor = math.number(scale, dtype);
  Place scores = math.mul(product(query, transposed(key), builder), factor);
  if (isCausal) {
    const Place all = builder.temporary(DType::Bool, llvm::ArrayRef(scores.sizes).take_back(2));
    Place seen = builder.temporary(DType::Bool, all.sizes);
    builder.fill(all, true);
    builder.callInto("aten::tril", "out", {builder.tensor(all), int64_t{0}}, seen);
    scores = math.where(seen, scores, math.number(-std::numeric_limits<double>::infinity(), dtype));
  }
  Place weights = builder.temporary(dtype, scores.sizes), slopes = weights;
  builder.callInto("aten::_softmax", "out", {builder.tensor(scores), int64_t{-1}, false}, weights);
  slopes = math.mul(product(grad, transposed(value), builder), weights);
  // weights * (slope - sum(weights * slope)).
  ir::Dims rows = slopes.sizes;
  rows.back() = 1;
  const Place sums = builder.temporary(dtype, rows);
  builder.callInto("aten::sum", "IntList_out",
                   {builder.tensor(slopes), std::vector<int64_t>{-1}, true, NoneArg{}}, sums);
  slopes = math.mul(math.sub(slopes, math.mul(weights, sums)), factor);
  const Place results[] = {product(slopes, key, builder),
                           product(transposed(slopes), query, builder),
                           product(transposed(weights), grad, builder)};
  for (const auto &[from, to] : llvm::zip_equal(results, writes))
    builder.copy(from, to);
}

} // namespace

Status lowerAttentionBackward(const ir::Node &node, BucketBuilder &builder) {
  std::vector<std::optional<Place>> reads;
  llvm::SmallVector<Place, 4> operands;
  for (llvm::StringRef name : {"grad_out", "query", "key", "value"}) {
    operands.push_back(builder.place(node.arg(name).value()));
    reads.emplace_back(operands.back());
  }
  const auto places = gradientPlaces(node, builder);
  const bool isCausal = node.arg("is_causal").as<bool>();
  const double scale = *node.arg("scale").asNumber();
  if (launchKernel(reads, {places.begin(), places.end()}, isCausal, scale, builder))
    return Status::ok();
  const DType dtype = operands[1].dtype;
  callLibTorch(operands, places, dtypeSize(dtype) == 2 ? DType::F32 : dtype, isCausal, scale,
               builder);
  return Status::ok();
}

} // namespace cgc::backend
