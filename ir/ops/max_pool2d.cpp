// aten.max_pool2d: two-dimensional maximum pooling.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/window_rules.h"

namespace cgc::ir {

const OpDef defs::MaxPool2d = {
    .schema = "(Tensor self, int[] kernel_size, int[] stride=[], int[] padding=[0,0], int[] "
              "dilation=[1,1], bool ceil_mode=false) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::maxPool<2>,
    .batch = batch::allButLast<2>,
    .gradient = [](GradientBuilder &b) -> Status {
      Node *pool = b.replaceForward(OpKind::CgcMaxPool2dIndices, b.node().args().vec());
      b.set("self",
            b.call(OpKind::CgcMaxPool2dBackward,
                   {b.grad(), b.arg("self"), b.arg("kernel_size"), b.arg("stride"),
                    b.arg("padding"), b.arg("dilation"), b.arg("ceil_mode"), pool->result(1)}));
      return Status::ok();
    },
    .doc = "Maxima of windows of self [N, C, H, W] (or without N): [N, C, OH, OW]. An empty stride "
           "means kernel_size.",
};

} // namespace cgc::ir
