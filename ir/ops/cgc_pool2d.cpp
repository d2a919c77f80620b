// cgc.pool2d: average and maximum pooling of images with dense channels.
#include "ir/op_builder.h"
#include "ir/ops/batch_rules.h"
#include "ir/ops/window_rules.h"

namespace cgc::ir {
namespace {

Status inferCgcPool2d(const InferArgs &args, rules::Results &results) {
  const TensorType &input = args.tensor("input");
  if (input.rank() != 4 || !isFloating(input.dtype) || input.sizes[3] < 1)
    return rules::mismatch("input", "[N, H, W, C] of a floating dtype", input);
  const llvm::StringRef kind = args.str("kind");
  if (kind != "average" && kind != "max")
    return rules::refuse("expected 'kind' to be average or max, got \"" + kind + "\"");
  if (!args.isNone("divisor") && args.integer("divisor") == 0)
    return rules::mismatch("divisor", "other than 0", 0);
  CGC_ASSIGN_OR_RETURN(const rules::PoolWindows windows, rules::poolWindows(args, 2));
  CGC_ASSIGN_OR_RETURN(const Dims dilation, rules::extents(args, "dilation", 2, 1));
  if (kind == "average" && dilation != Dims{1, 1})
    return rules::refuse("expected 'dilation' to be [1,1] for an average, got " +
                         rules::toString(dilation));
  Dims sizes = {input.sizes[0]};
  for (unsigned i = 0; i < 2; ++i) {
    CGC_ASSIGN_OR_RETURN(const int64_t count,
                         rules::windowCount("input", input.sizes[1 + i], windows.kernel[i],
                                            windows.stride[i], windows.padding[i], dilation[i],
                                            args.boolean("ceil_mode")));
    sizes.push_back(count);
  }
  sizes.push_back(input.sizes[3]);
  return rules::addDense(results, input.dtype, sizes);
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
    .decompose = defineCgcPool2d,
    .doc = "Averages or maxima (kind average or max) of windows of input [N, H, W, C]: [N, OH, OW, "
           "C]. The other arguments as in aten.avg_pool2d, which calls counts_padding "
           "count_include_pad and divisor divisor_override, and aten.max_pool2d.",
};

} // namespace cgc::ir
