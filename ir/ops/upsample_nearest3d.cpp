// aten.upsample_nearest3d: nearest-neighbor resampling of volumes.
#include "ir/ops/resample_rules.h"

namespace cgc::ir {

const OpDef defs::UpsampleNearest3d = {
    .schema = "(Tensor self, int[] output_size, float? scales_d=none, float? scales_h=none, float? "
              "scales_w=none) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::upsample<3>,
    .decompose = rules::resampleNearest<3, rules::Nearest::Edge>,
    .doc = "self [N, C, D, H, W] resampled to [N, C, output_size], nearest-neighbor: the element "
           "at the lower edge of each result. A scale replaces the quotient of the sizes in the "
           "mapping of coordinates; floating dtypes.",
};

} // namespace cgc::ir
