// gather and scatter_add: cgc's own kernels on cuda; else LibTorch.
#include "runtime/kernels/rowwise/gather.h"
#include "backend/kernels.h"
#include "backend/lowering.h"

#include <numeric>

namespace cgc::backend {
namespace {

/// The dimension of self that is indexed, if the kernels take the call: index has as many elements
/// as self in all other dimensions.
std::optional<size_t> indexedDim(const ir::Node &node, const BucketBuilder &builder) {
  const Place self = builder.place(node.arg("self").value()),
              index = builder.place(node.arg("index").value());
  const size_t rank = self.sizes.size();
  const int64_t elements = self.type().numElements(), indices = index.type().numElements();
  if (builder.target() != DeviceKind::Cuda || rank == 0 || index.sizes.size() != rank ||
      elements == 0 || indices == 0 || std::max(elements, indices) > INT32_MAX)
    return std::nullopt;
  const auto dim = node.arg("dim").as<int64_t>();
  const size_t indexed = dim < 0 ? dim + rank : dim;
  for (size_t d = 0; d < rank; ++d)
    if (d != indexed && index.sizes[d] != self.sizes[d])
      return std::nullopt;
  return indexed;
}

/// The argument, dense, as [outer, n, inner] around dimension `dim`.
Place aroundDim(const ir::Arg &arg, size_t dim, BucketBuilder &builder) {
  Place place = densePlace(builder.place(arg.value()), builder);
  const auto product = [](llvm::ArrayRef<int64_t> sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies());
  };
  const llvm::ArrayRef<int64_t> sizes = place.sizes;
  place.sizes = {product(sizes.take_front(dim)), sizes[dim], product(sizes.drop_front(dim + 1))};
  place.strides = ir::contiguousStrides(place.sizes);
  return place;
}

/// Launches the kernel on these arguments around dimension `dim`. Its check takes all that
/// indexedDim() lets through.
void launchIndexed(const ir::Node &node, std::string kernel, size_t dim,
                   llvm::ArrayRef<llvm::StringRef> args, BucketBuilder &builder) {
  std::vector<std::optional<Place>> reads;
  for (llvm::StringRef arg : args)
    reads.emplace_back(aroundDim(node.arg(arg), dim, builder));
  const Place result = builder.allocate(*node.result());
  const bool isLaunched = launch({.kernel = std::move(kernel),
                                  .blocks = gatherBlocks(result.type().numElements()),
                                  .threads = kGatherThreads,
                                  .reads = std::move(reads),
                                  .writes = {result}},
                                 builder);
  CGC_CHECK(isLaunched && "the kernel takes dense tensors around a dimension");
}

} // namespace

Status lowerGather(const ir::Node &node, BucketBuilder &builder) {
  if (const std::optional<size_t> dim = indexedDim(node, builder)) {
    launchIndexed(node, "gather", *dim, {"self", "index"}, builder);
    return Status::ok();
  }
  std::vector<AtenArg> args = callArgs(node, builder);
  args.emplace_back(false); // The gradient is not sparse.
  builder.callInto("aten::gather", "out", std::move(args), builder.allocate(*node.result()));
  return Status::ok();
}

Status lowerScatterAdd(const ir::Node &node, BucketBuilder &builder) {
  constexpr int64_t kMostIndices = 16; // Each element of the result compares so many.
  const Place index = builder.place(node.arg("index").value()),
              source = builder.place(node.arg("src").value());
  const std::optional<size_t> dim = indexedDim(node, builder);
  if (dim && index.sizes[*dim] <= kMostIndices && source.sizes == index.sizes &&
      isFloating(source.dtype) && source.dtype != DType::F64) {
    launchIndexed(node, kernelNamed("scatter_add", source.dtype), *dim, {"self", "index", "src"},
                  builder);
    return Status::ok();
  }
  builder.callInto("aten::scatter_add", "out", callArgs(node, builder),
                   builder.allocate(*node.result()));
  return Status::ok();
}

} // namespace cgc::backend
