// ProductSite: recognising the two kinds of records, and making them.
#include "tuner/product_site.h"

#include "runtime/kernels/kernel_table.h"
#include "runtime/plan/gemm_call.h"

#include <algorithm>
#include <initializer_list>

namespace cgc::tuner {
namespace {

bool areMatrices(const Bucket &bucket, std::initializer_list<TensorId> ids) {
  return std::ranges::all_of(ids, [&](TensorId id) {
    return id != kNoTensor && bucket.tensors[uint32_t(id)].sizes.size() == 2;
  });
}

std::optional<ProductSite> siteOf(const KernelLaunch &launch, const Bucket &bucket) {
  const auto family = backend::tiledKernelsOf(launch);
  if (!family || launch.reads.size() < 4 || launch.writes.empty() || launch.ints.size() < 4 ||
      !areMatrices(bucket, {launch.reads[0], launch.reads[1], launch.writes[0]}))
    return std::nullopt;
  // product_norm has moments instead.
  const bool mayHaveResidual = family->name == backend::productKernels().name;
  const TensorId residual = mayHaveResidual ? launch.reads[3] : kNoTensor;
  if (residual != kNoTensor && !areMatrices(bucket, {residual}))
    return std::nullopt;
  ProductSite site;
  site.dtype = bucket.tensors[uint32_t(launch.reads[0])].dtype;
  site.tokens = launch.ints[0];
  site.features = launch.ints[1];
  site.depth = launch.ints[2];
  site.activation = Activation(launch.ints[3]);
  site.x = launch.reads[0];
  site.weight = launch.reads[1];
  site.bias = launch.reads[2];
  site.residual = residual;
  site.result = launch.writes[0];
  site.family = *family;
  const auto isThere = [](TensorId id) { return id != kNoTensor; };
  site.more = size_t(
      std::count_if(launch.reads.begin() + (mayHaveResidual ? 4 : 3), launch.reads.end(), isThere) +
      std::count_if(launch.writes.begin() + 1, launch.writes.end(), isThere));
  return site;
}

std::optional<ProductSite> siteOf(const LibraryCall &call, const Bucket &bucket) {
  if (!isProduct(call))
    return std::nullopt;
  const Result<ProductCall> product = productCall(call, bucket.tensors);
  if (!product.isOk())
    return std::nullopt;
  const TensorRef &x = bucket.tensors[uint32_t(product->x)];
  ProductSite site;
  site.dtype = x.dtype;
  site.tokens = x.sizes[0];
  site.features = bucket.tensors[uint32_t(product->weight)].sizes[0];
  site.depth = x.sizes[1];
  site.activation = product->relu ? Activation::Relu : Activation::None;
  site.tf32 = product->tf32;
  site.x = product->x;
  site.weight = product->weight;
  site.bias = product->bias;
  site.residual = product->residual;
  site.result = product->d;
  site.family = backend::productKernels();
  return site;
}

template <class T> std::optional<ProductSite> siteOf(const T &, const Bucket &) {
  return std::nullopt;
}

std::string matrixText(const TensorRef &t) {
  std::string text = "[" + std::to_string(t.sizes[0]) + "," + std::to_string(t.sizes[1]) + "]";
  if (!isDense(t.sizes, t.strides))
    text += " by " + std::to_string(rowStride(t));
  // An algorithm of cuBLASLt is for operands that are aligned so much, at least.
  if (const uint64_t at = t.slot.offset % kBufferAlignment; at != 0)
    text += " at " + std::to_string(at & (~at + 1));
  return text;
}

} // namespace

std::optional<ProductSite> productSite(const LaunchRecord &record, const Bucket &bucket) {
  return std::visit([&](const auto &op) { return siteOf(op, bucket); }, record.op);
}

std::string describe(const ProductSite &site, const Bucket &bucket) {
  const auto tensor = [&](TensorId id) -> const TensorRef & {
    return bucket.tensors[uint32_t(id)];
  };
  std::string text = site.family.name + " " + std::string(dtypeName(site.dtype)) + " " +
                     matrixText(tensor(site.x)) + " x " + matrixText(tensor(site.weight));
  if (const std::string result = matrixText(tensor(site.result)); result.find(' ') != result.npos)
    text += ", to " + result;
  if (site.bias != kNoTensor)
    text += ", bias";
  if (site.activation != Activation::None)
    text += ", activation " + std::to_string(int(site.activation));
  if (site.residual != kNoTensor)
    text += ", residual " + matrixText(tensor(site.residual));
  if (site.more > 0)
    text += ", " + std::to_string(site.more) + " more";
  return site.tf32 ? text + ", tf32" : text;
}

decltype(LaunchRecord::op) opOf(const Choice &choice, const ProductSite &site,
                                const LaunchRecord &record, TensorId workspace) {
  if (const auto *tile = std::get_if<backend::TileChoice>(&choice.how)) {
    KernelLaunch launch;
    const auto *now = std::get_if<KernelLaunch>(&record.op);
    if (now)
      launch = *now;
    else
      launch.ints = {site.tokens, site.features, site.depth, int64_t(site.activation)};
    backend::setTile(launch, site.family, site.dtype, *tile);
    if (!now) {
      const Kernel *kernel = findKernel(launch.kernel);
      launch.reads = {site.x, site.weight, site.bias, site.residual};
      launch.reads.resize(kernel->reads, kNoTensor);
      launch.writes = {site.result};
      launch.writes.resize(kernel->writes, kNoTensor);
    }
    return launch;
  }
  LibraryCall call = libraryCall({.x = site.x,
                                  .weight = site.weight,
                                  .bias = site.bias,
                                  .residual = site.residual,
                                  .d = site.result,
                                  .workspace = workspace,
                                  .relu = site.activation == Activation::Relu,
                                  .tf32 = site.tf32});
  call.algorithm = std::get<std::vector<std::byte>>(choice.how);
  return call;
}

std::string nameOf(const LaunchRecord &record) {
  if (const auto *launch = std::get_if<KernelLaunch>(&record.op))
    return launch->kernel + " with " + std::to_string(launch->sharedBytes >> 10) + " KiB";
  const auto &call = std::get<LibraryCall>(record.op);
  return call.algorithm.empty() ? "cuBLASLt's heuristic" : "cuBLASLt, tuned";
}

} // namespace cgc::tuner
