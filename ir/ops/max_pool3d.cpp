// aten.max_pool3d: three-dimensional maximum pooling.
#include "ir/ops/batch_rules.h"
#include "ir/ops/window_rules.h"

namespace cgc::ir {

const OpDef defs::MaxPool3d = {
    .schema = "(Tensor self, int[] kernel_size, int[] stride=[], int[] padding=[0,0,0], int[] "
              "dilation=[1,1,1], bool ceil_mode=false) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::maxPool<3>,
    .batch = batch::allButLast<3>,
    .doc = "Maxima of windows of self [N, C, D, H, W] (or without N): [N, C, OD, OH, OW]. An "
           "empty stride means kernel_size.",
};

} // namespace cgc::ir
