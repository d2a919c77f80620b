// layer_norm: cgc's own kernel on cuda; LibTorch's would allocate its result.
#include "backend/ops/lower_layer_norm.h"

#include "backend/kernels.h"
#include "runtime/kernels/rowwise/layer_norm.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::backend {
namespace {

/// The launch that computes `norm`. Nothing if there are no elements.
std::optional<Launch> kernelOf(const LayerNorm &norm, const BucketBuilder &builder) {
  int64_t elements = norm.input.type().numElements();
  if (elements == 0)
    return std::nullopt;
  int64_t rows = elements / norm.columns;
  Launch kernel{.kernel = normKernel("layer_norm", norm.input.dtype, {norm.weight, norm.bias}),
                .blocks = layerNormBlocks(rows, builder.multiprocessors()),
                .threads = kLayerNormThreads,
                .reads = {norm.input, norm.weight, norm.bias},
                .writes = {norm.result},
                .ints = {rows, norm.columns},
                .floats = {norm.eps},
                .rowStatistics = norm.rowStatistics};
  if (norm.addend) {
    kernel.kernel = normKernel("add_layer_norm", norm.input.dtype, {norm.weight, norm.bias});
    kernel.reads.insert(kernel.reads.begin() + 1, norm.addend);
    kernel.writes.insert(kernel.writes.begin(), *norm.sum);
    kernel.ints.push_back(norm.addend->type().numElements() / norm.columns);
  }
  return kernel;
}

/// Adds a call of LibTorch's layer_norm. `shape` holds the sizes of the trailing dimensions that
/// are normalized.
void callLayerNorm(const LayerNorm &norm, std::vector<int64_t> shape, BucketBuilder &builder) {
  // LibTorch's GPU layer_norm takes one dtype: x is converted to that of the parameters and back.
  Place x = norm.input;
  const std::optional<Place> &parameter = norm.weight ? norm.weight : norm.bias;
  Place normalized = norm.result;
  if (parameter && parameter->dtype != x.dtype) {
    Place wide = builder.temporary(parameter->dtype, x.sizes);
    builder.copy(x, wide);
    x = wide;
    normalized = builder.temporary(parameter->dtype, x.sizes);
  }
  const auto argument = [&](const std::optional<Place> &place) {
    return place ? AtenArg(builder.tensor(*place)) : AtenArg(NoneArg{});
  };
  builder.callThenCopy("aten::layer_norm", "",
                       {builder.tensor(x), std::move(shape), argument(norm.weight),
                        argument(norm.bias), norm.eps, /*cudnn_enable=*/true},
                       {normalized});
  if (normalized.dtype != norm.result.dtype)
    builder.copy(normalized, norm.result);
}

} // namespace

std::string normKernel(llvm::StringRef family, DType dtype,
                       llvm::ArrayRef<std::optional<Place>> parameters) {
  const auto *parameter = llvm::find_if(parameters, [](const auto &place) { return place; });
  const bool isMixed = parameter != parameters.end() && (*parameter)->dtype != dtype;
  return kernelNamed(family.str() + (isMixed ? "_by_f32" : ""), dtype);
}

bool launchLayerNorm(const LayerNorm &norm, BucketBuilder &builder) {
  const std::optional<Launch> kernel = kernelOf(norm, builder);
  return kernel && launch(*kernel, builder);
}

Status lowerLayerNorm(const ir::Node &node, BucketBuilder &builder) {
  LayerNorm norm{.input = builder.place(node.arg("input").value()),
                 .weight = builder.optionalPlace(node.arg("weight")),
                 .bias = builder.optionalPlace(node.arg("bias")),
                 .result = builder.allocate(*node.result()),
                 .columns = 1,
                 .eps = *node.arg("eps").asNumber()};
  auto normalized = *node.arg("normalized_shape").asInts();
  for (int64_t size : normalized)
    norm.columns *= size;
  if (!norm.input.type().isContiguous()) {
    // The kernel takes dense rows only. `dense.input` has no memory until the kernel is known to
    // take everything else; only then are the rows copied.
    LayerNorm dense = norm;
    dense.input = {.dtype = norm.input.dtype,
                   .sizes = norm.input.sizes,
                   .strides = ir::contiguousStrides(norm.input.sizes)};
    const std::optional<Launch> kernel = kernelOf(dense, builder);
    if (kernel && takes(*kernel, builder)) {
      dense.input = builder.temporary(norm.input.dtype, norm.input.sizes);
      builder.copy(norm.input, dense.input);
      norm.input = dense.input;
    }
  }
  if (launchLayerNorm(norm, builder))
    return Status::ok();
  callLayerNorm(norm, {normalized.begin(), normalized.end()}, builder);
  return Status::ok();
}

} // namespace cgc::backend
