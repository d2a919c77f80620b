// layer_norm: a kernel of our own on cuda, as LibTorch has none that writes into given memory.
#include "backend/lowering.h"

#include "runtime/kernels/kernel_table.h"
#include "runtime/kernels/layer_norm.h"

namespace cgc::backend {
namespace {

/// The kernel that takes these tensors; null if none does.
const Kernel *kernelFor(const Place &input, const Place &result,
                        llvm::ArrayRef<std::optional<Place>> parameters) {
  auto fits = [&](const Place &place) {
    return place.dtype == input.dtype && place.type().isContiguous();
  };
  if (!fits(input) || !fits(result) || input.type().numElements() == 0)
    return nullptr;
  for (const std::optional<Place> &parameter : parameters)
    if (parameter && !fits(*parameter))
      return nullptr;
  return findKernel("layer_norm_" + std::string(dtypeName(input.dtype)));
}

} // namespace

Status lowerLayerNorm(const ir::Node &node, BucketBuilder &builder) {
  Place input = builder.place(node.arg("input").value());
  Place result = builder.allocate(*node.result());
  auto optional = [&](const ir::Arg &arg) {
    return arg.isNone() ? std::nullopt : std::optional(builder.place(arg.value()));
  };
  std::optional<Place> parameters[] = {optional(node.arg("weight")), optional(node.arg("bias"))};

  const Kernel *kernel =
      builder.target() == DeviceKind::Cuda ? kernelFor(input, result, parameters) : nullptr;
  if (!kernel) {
    std::vector<AtenArg> args = callArgs(node, builder);
    args.emplace_back(true); // cudnn_enable
    builder.callThenCopy("aten::layer_norm", "", std::move(args), {result});
    return Status::ok();
  }
  auto normalized = *node.arg("normalized_shape").asInts();
  int64_t columns = 1;
  for (int64_t size : normalized)
    columns *= size;
  int64_t rows = input.type().numElements() / columns;
  KernelLaunch launch;
  launch.kernel = kernel->name;
  launch.abiHash = kernel->abiHash;
  launch.grid[0] = static_cast<uint32_t>((rows + kLayerNormRows - 1) / kLayerNormRows);
  launch.block[0] = kLayerNormThreads;
  launch.reads.push_back(builder.tensor(input));
  for (const std::optional<Place> &parameter : parameters)
    launch.reads.push_back(parameter ? builder.tensor(*parameter) : kNoTensor);
  launch.writes = {builder.tensor(result)};
  launch.ints = {rows, columns};
  launch.floats = {*node.arg("eps").asNumber()};
  builder.record({std::move(launch)});
  return Status::ok();
}

} // namespace cgc::backend
