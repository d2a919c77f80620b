// aten.upsample_linear1d: linear resampling of sequences.
#include "ir/ops/resample_rules.h"

namespace cgc::ir {

const OpDef defs::UpsampleLinear1d = {
    .schema = "(Tensor self, int[] output_size, bool align_corners, float? scales=none) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::upsample<1>,
    .decompose = rules::resampleLinear<1>,
    .doc = "self [N, C, W] resampled to [N, C, output_size], linear. A scale replaces the quotient "
           "of the sizes in the mapping of coordinates; floating dtypes.",
};

} // namespace cgc::ir
