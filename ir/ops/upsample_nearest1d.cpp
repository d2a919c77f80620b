// aten.upsample_nearest1d: nearest-neighbor resampling of sequences.
#include "ir/ops/resample_rules.h"

namespace cgc::ir {

const OpDef defs::UpsampleNearest1d = {
    .schema = "(Tensor self, int[] output_size, float? scales=none) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::upsample<1>,
    .decompose = rules::resampleNearest<1, rules::Nearest::Edge>,
    .doc = "self [N, C, W] resampled to [N, C, output_size], nearest-neighbor: the element at the "
           "lower edge of each result. A scale replaces the quotient of the sizes in the mapping "
           "of coordinates; floating dtypes.",
};

} // namespace cgc::ir
