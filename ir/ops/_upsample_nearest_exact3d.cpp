// aten._upsample_nearest_exact3d: nearest-neighbor resampling at centers of volumes.
#include "ir/ops/resample_rules.h"

namespace cgc::ir {

const OpDef defs::UpsampleNearestExact3d = {
    .schema = "(Tensor self, int[] output_size, float? scales_d=none, float? scales_h=none, float? "
              "scales_w=none) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::upsample<3>,
    .decompose = rules::resampleNearest<3, rules::Nearest::Center>,
    .doc = "self [N, C, D, H, W] resampled to [N, C, output_size], nearest-neighbor: the element "
           "at the center of each result. A scale replaces the quotient of the sizes in the "
           "mapping of coordinates; floating dtypes.",
};

} // namespace cgc::ir
