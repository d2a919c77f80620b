// aten.grid_sampler_2d: an image sampled at given coordinates.
#include "ir/ops/batch_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferGridSampler2d(const InferArgs &args, rules::Results &results) {
  const TensorType &input = args.tensor("input"), &grid = args.tensor("grid");
  if (input.rank() != 4 || !isFloating(input.dtype))
    return rules::mismatch("input", "[N, C, H, W] of a floating dtype", input);
  if (input.sizes[2] == 0 || input.sizes[3] == 0)
    return rules::mismatch("input", "an image with rows and columns", input);
  if (grid.rank() != 4 || grid.sizes[0] != input.sizes[0] || grid.sizes[3] != 2)
    return rules::mismatch("grid", "[" + llvm::Twine(input.sizes[0]) + ", OH, OW, 2]", grid);
  CGC_TRY(rules::sameDType(args, "input", {"grid"}));
  for (llvm::StringRef name : {"interpolation_mode", "padding_mode"})
    if (args.integer(name) < 0 || args.integer(name) > 2)
      return rules::mismatch(name, "0, 1 or 2", args.integer(name));
  return rules::addDense(results, input.dtype,
                         {input.sizes[0], input.sizes[1], grid.sizes[1], grid.sizes[2]});
}

} // namespace

const OpDef defs::GridSampler2d = {
    .schema = "(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
              "align_corners) -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferGridSampler2d,
    .aten = "copy aten::grid_sampler_2d",
    .batch =
        [](const BatchCall &call) {
          return batch::Join(call)
              .add(call.args["input"], {0, 1, batch::kCombined, batch::kCombined})
              .add(call.args["grid"], {0, 2, 3, batch::kCombined})
              .state();
        },
    .doc = "input [N, C, H, W] sampled at the coordinates grid [N, OH, OW, 2], in which -1 and 1 "
           "are the borders: [N, C, OH, OW]. interpolation_mode: 0 bilinear, 1 nearest, 2 "
           "bicubic; padding_mode: 0 zeros, 1 border, 2 reflection. Floating dtypes.",
};

} // namespace cgc::ir
