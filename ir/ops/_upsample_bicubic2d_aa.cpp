// aten._upsample_bicubic2d_aa: bicubic resampling of images with antialiasing.
#include "ir/ops/batch_rules.h"
#include "ir/ops/window_rules.h"

namespace cgc::ir {

const OpDef defs::UpsampleBicubic2dAa = {
    .schema = "(Tensor self, int[] output_size, bool align_corners, float? scales_h=none, float? "
              "scales_w=none) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::upsampleAntialiased2d,
    .batch = batch::allButLast<2>,
    .doc = "self [N, C, H, W] resampled to [N, C, output_size], bicubic, with a filter that "
           "grows with the reduction. A scale replaces the quotient of the sizes in the mapping "
           "of coordinates and must be at least that; floating dtypes.",
};

} // namespace cgc::ir
