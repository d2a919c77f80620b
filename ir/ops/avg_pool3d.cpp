// aten.avg_pool3d: three-dimensional average pooling.
#include "ir/ops/batch_rules.h"
#include "ir/ops/window_rules.h"

namespace cgc::ir {
namespace {

Status inferAvgPool3d(const InferArgs &args, rules::Results &results) {
  CGC_TRY(rules::averagePool<3>(args, results));
  const auto image = llvm::ArrayRef(args.tensor("self").sizes).take_back(3);
  CGC_ASSIGN_OR_RETURN(Dims kernel, rules::extents(args, "kernel_size", 3, 1));
  for (unsigned i = 0; i < 3; ++i)
    if (kernel[i] > image[i]) // As in LibTorch, whatever the padding.
      return rules::mismatch("kernel_size", "no larger than the image " + rules::toString(image),
                             kernel[i]);
  return Status::ok();
}

} // namespace

const OpDef defs::AvgPool3d = {
    .schema = "(Tensor self, int[] kernel_size, int[] stride=[], int[] padding=[0,0,0], bool "
              "ceil_mode=false, bool count_include_pad=true, int? divisor_override=none) -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferAvgPool3d,
    .batch = batch::allButLast<3>,
    .doc = "Averages of windows of self [N, C, D, H, W] (or without N): [N, C, OD, OH, OW]. An "
           "empty stride means kernel_size.",
};

} // namespace cgc::ir
