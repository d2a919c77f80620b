// aten.upsample_trilinear3d: trilinear resampling of volumes.
#include "ir/ops/resample_rules.h"

namespace cgc::ir {

const OpDef defs::UpsampleTrilinear3d = {
    .schema = "(Tensor self, int[] output_size, bool align_corners, float? scales_d=none, float? "
              "scales_h=none, float? scales_w=none) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::upsample<3>,
    .decompose = rules::resampleLinear<3>,
    .doc = "self [N, C, D, H, W] resampled to [N, C, output_size], trilinear. A scale replaces the "
           "quotient of the sizes in the mapping of coordinates; floating dtypes.",
};

} // namespace cgc::ir
