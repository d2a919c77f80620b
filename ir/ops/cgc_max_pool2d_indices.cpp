// cgc.max_pool2d_indices: maximum pooling that keeps the places of the maxima.
#include "ir/ops/window_rules.h"

namespace cgc::ir {
namespace {

Status inferCgcMaxPool2dIndices(const InferArgs &args, rules::Results &results) {
  CGC_TRY(rules::maxPool<2>(args, results));
  return rules::addDense(results, DType::I64, results.back().type.sizes);
}

} // namespace

const OpDef defs::CgcMaxPool2dIndices = {
    .schema = "(Tensor self, int[] kernel_size, int[] stride=[], int[] padding=[0,0], int[] "
              "dilation=[1,1], bool ceil_mode=false) -> (Tensor, Tensor)",
    .traits = kPure | kReduction,
    .infer = inferCgcMaxPool2dIndices,
    .aten = "aten::max_pool2d_with_indices.out",
    .doc = "max_pool2d of self, then the index in its image [H, W] of each maximum, in i64.",
};

} // namespace cgc::ir
