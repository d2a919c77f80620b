// cgc.layer_norm_chain: one kernel on cuda.
#include "backend/kernels.h"
#include "backend/ops/lower_activation.h"
#include "backend/ops/lower_layer_norm.h"
#include "runtime/kernels/rowwise/layer_norm.h"

namespace cgc::backend {

Result<bool> launchLayerNormChain(const ir::Node &node, BucketBuilder &builder) {
  const Place input = builder.place(node.arg("input").value());
  const int64_t elements = input.type().numElements();
  if (elements == 0)
    return false;
  const int64_t columns = input.sizes.back();
  std::vector<std::optional<Place>> reads = {input};
  for (llvm::StringRef name : {"weight", "bias", "next_weight", "next_bias"})
    reads.push_back(builder.optionalPlace(node.arg(name)));
  const std::optional<double> nextEps = node.arg("next_eps").asNumber();
  const Activation activation = activationNamed(node.arg("activation").as<std::string>());
  return launch(
      {.kernel = normKernel("layer_norm_chain", input.dtype, llvm::ArrayRef(reads).drop_front()),
       .blocks = layerNormBlocks(elements / columns, builder.multiprocessors()),
       .threads = kLayerNormThreads,
       .reads = reads,
       .writes = {builder.allocate(*node.result())},
       .ints = {elements / columns, columns, nextEps ? 2 : 1, int64_t(activation)},
       .floats = {*node.arg("eps").asNumber(), nextEps.value_or(0)}},
      builder);
}

} // namespace cgc::backend
