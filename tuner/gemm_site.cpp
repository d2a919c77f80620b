// GemmSite: recognizes the two kinds of records that compute a GEMM, and makes them.
#include "tuner/gemm_site.h"

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

std::optional<GemmSite> siteOf(const KernelLaunch &launch, const Bucket &bucket) {
  const auto family = backend::tiledKernelsOf(launch);
  if (!family || launch.reads.size() < 4 || launch.writes.empty() || launch.ints.size() < 4 ||
      !areMatrices(bucket, {launch.reads[0], launch.reads[1], launch.writes[0]}))
    return std::nullopt;
  // gemm_norm reads row statistics in place of a residual.
  const bool mayHaveResidual = family->name == backend::gemmKernels().name;
  const TensorId residual = mayHaveResidual ? launch.reads[3] : kNoTensor;
  if (residual != kNoTensor && !areMatrices(bucket, {residual}))
    return std::nullopt;
  GemmSite site;
  site.dtype = bucket.tensors[uint32_t(launch.reads[0])].dtype;
  site.m = launch.ints[0];
  site.n = launch.ints[1];
  site.k = launch.ints[2];
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

std::optional<GemmSite> siteOf(const LibraryCall &call, const Bucket &bucket) {
  if (!isGemm(call))
    return std::nullopt;
  const Result<GemmCall> gemm = gemmCall(call, bucket.tensors);
  if (!gemm.isOk())
    return std::nullopt;
  const TensorRef &x = bucket.tensors[uint32_t(gemm->x)];
  GemmSite site;
  site.dtype = x.dtype;
  site.m = x.sizes[0];
  site.n = bucket.tensors[uint32_t(gemm->weight)].sizes[0];
  site.k = x.sizes[1];
  site.activation = gemm->relu ? Activation::Relu : Activation::None;
  site.tf32 = gemm->tf32;
  site.x = gemm->x;
  site.weight = gemm->weight;
  site.bias = gemm->bias;
  site.residual = gemm->residual;
  site.result = gemm->d;
  site.family = backend::gemmKernels();
  return site;
}

template <class T> std::optional<GemmSite> siteOf(const T &, const Bucket &) {
  return std::nullopt;
}

std::string matrixText(const TensorRef &t) {
  std::string text = "[" + std::to_string(t.sizes[0]) + "," + std::to_string(t.sizes[1]) + "]";
  if (!isDense(t.sizes, t.strides))
    text += " by " + std::to_string(rowStride(t));
  // An algorithm of cuBLASLt requires operands of at least this alignment.
  if (const uint64_t at = t.slot.offset % kBufferAlignment; at != 0)
    text += " at " + std::to_string(at & (~at + 1));
  return text;
}

} // namespace

std::optional<GemmSite> gemmSite(const LaunchRecord &record, const Bucket &bucket) {
  return std::visit([&](const auto &op) { return siteOf(op, bucket); }, record.op);
}

std::string describe(const GemmSite &site, const Bucket &bucket) {
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

decltype(LaunchRecord::op) opOf(const Choice &choice, const GemmSite &site,
                                const LaunchRecord &record, TensorId workspace) {
  if (const auto *tile = std::get_if<backend::TileChoice>(&choice.how)) {
    KernelLaunch launch;
    const auto *now = std::get_if<KernelLaunch>(&record.op);
    if (now)
      launch = *now;
    else
      launch.ints = {site.m, site.n, site.k, int64_t(site.activation)};
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
