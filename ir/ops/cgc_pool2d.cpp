// cgc.pool2d: average and maximum pooling of images with dense channels.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/window_rules.h"

namespace cgc::ir {
namespace {

Status inferCgcPool2d(const InferArgs &args, rules::Results &results) {
  CGC_ASSIGN_OR_RETURN(const Dims sizes, rules::imagePoolSizes(args));
  return rules::addDense(results, args.tensor("input").dtype, sizes);
}

Status backwardCgcPool2d(GradientBuilder &b) {
  std::vector<Arg> args = b.node().args().vec();
  args.insert(args.begin(), b.grad());
  b.set("input", b.callNode(OpKind::CgcPool2dBackward, std::move(args))->result());
  return Status::ok();
}

Result<Values> defineCgcPool2d(OpBuilder &b) {
  const Arg image = b.permute(b.input("input"), {0, 3, 1, 2});
  const Arg &kernel = b.arg("kernel_size"), &stride = b.arg("stride"), &padding = b.arg("padding"),
            &ceil = b.arg("ceil_mode");
  Value *y =
      b.args().str("kind") == "max"
          ? b.call(OpKind::MaxPool2d, {image, kernel, stride, padding, b.arg("dilation"), ceil})
          : b.call(OpKind::AvgPool2d, {image, kernel, stride, padding, ceil,
                                       b.arg("counts_padding"), b.arg("divisor")});
  y = b.permute(y, {0, 2, 3, 1});
  return Values{y->tensor().isContiguous() ? y : b.call(OpKind::Contiguous, {y})};
}

} // namespace

const OpDef defs::CgcPool2d = {
    .schema = "(Tensor input, str kind, int[] kernel_size, int[] stride=[], int[] padding=[0,0], "
              "int[] dilation=[1,1], bool ceil_mode=false, bool counts_padding=true, int? "
              "divisor=none) -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferCgcPool2d,
    .batch =
        [](const BatchCall &call) {
          return batch::Join(call)
              .add(call.args["input"], batch::leading(call.args.tensor("input"), 1))
              .state();
        },
    .gradient = backwardCgcPool2d,
    .decompose = defineCgcPool2d,
    .doc = "Averages or maxima (kind average or max) of windows of input [N, H, W, C]: [N, OH, OW, "
           "C]. The other arguments as in aten.avg_pool2d, which calls counts_padding "
           "count_include_pad and divisor divisor_override, and aten.max_pool2d.",
};

} // namespace cgc::ir
