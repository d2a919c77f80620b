// aten._upsample_nearest_exact2d: nearest-neighbor resampling at centers of images.
#include "ir/ops/resample_rules.h"

namespace cgc::ir {

const OpDef defs::UpsampleNearestExact2d = {
    .schema =
        "(Tensor self, int[] output_size, float? scales_h=none, float? scales_w=none) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::upsample<2>,
    .decompose = rules::resampleNearest<2, rules::Nearest::Center>,
    .doc = "self [N, C, H, W] resampled to [N, C, output_size], nearest-neighbor: the element at "
           "the center of each result. A scale replaces the quotient of the sizes in the mapping "
           "of coordinates; floating dtypes.",
};

} // namespace cgc::ir
