// aten.upsample_nearest2d: nearest-neighbor resampling of images.
#include "ir/ops/batch_rules.h"
#include "ir/ops/window_rules.h"

namespace cgc::ir {

const OpDef defs::UpsampleNearest2d = {
    .schema =
        "(Tensor self, int[] output_size, float? scales_h=none, float? scales_w=none) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::upsample<2>,
    .batch = batch::allButLast<2>,
    .doc = "self [N, C, H, W] resampled to [N, C, output_size], nearest-neighbor. A scale replaces "
           "the quotient of the sizes in the mapping of coordinates; floating dtypes.",
};

} // namespace cgc::ir
