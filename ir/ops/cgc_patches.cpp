// cgc.patches: an image cut into patches, one per row.
#include "ir/op_builder.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferCgcPatches(const InferArgs &args, rules::Results &results) {
  const TensorType &image = args.tensor("image");
  Dims patch = args.ints("patch");
  int64_t columns = args.integer("columns");
  if (image.rank() != 4)
    return rules::mismatch("image", "[B, C, H, W]", image);
  if (patch.size() != 2 || patch[0] < 1 || patch[1] < 1 || patch[0] > image.sizes[2] ||
      patch[1] > image.sizes[3])
    return rules::refuse("expected 'patch' to be two sizes that fit in 'image' " +
                         rules::toString(image.sizes) + ", got " + rules::toString(patch));
  int64_t pixels = image.sizes[1] * patch[0] * patch[1];
  if (columns < pixels)
    return rules::mismatch("columns", "at least " + llvm::Twine(pixels), columns);
  int64_t rows = (image.sizes[2] / patch[0]) * (image.sizes[3] / patch[1]);
  return rules::addDense(results, image.dtype, {image.sizes[0], rows, columns});
}

/// Puts the pixels of each row back to their places. No patch has those at the border.
Status backwardCgcPatches(GradientBuilder &b) {
  const Dims image = b.input("image")->tensor().sizes;
  const InferArgs args = b.args();
  const Dims patch = args.ints("patch");
  const int64_t rows = image[2] / patch[0], columns = image[3] / patch[1];
  const int64_t pixels = image[1] * patch[0] * patch[1];
  Value *grad = b.grad();
  if (args.integer("columns") != pixels)
    grad = b.call(OpKind::Slice, {grad, 2, 0, pixels});
  grad = b.reshape(grad, {image[0], rows, columns, image[1], patch[0], patch[1]});
  grad = b.call(OpKind::Permute, {grad, Arg::ints(Dims{0, 3, 1, 4, 2, 5})});
  grad = b.reshape(grad, {image[0], image[1], rows * patch[0], columns * patch[1]});
  const int64_t bottom = image[2] - rows * patch[0], right = image[3] - columns * patch[1];
  if (bottom > 0 || right > 0)
    grad = b.call(OpKind::ConstantPadNd, {grad, Arg::ints(Dims{0, right, 0, bottom})});
  b.set("image", grad);
  return Status::ok();
}

Result<Values> defineCgcPatches(OpBuilder &b) {
  Value *image = b.input("image");
  const Dims sizes = image->tensor().sizes, patch = b.args().ints("patch");
  const int64_t rows = sizes[2] / patch[0], columns = sizes[3] / patch[1];
  image = b.call(OpKind::Slice, {image, 2, 0, rows * patch[0]});
  image = b.call(OpKind::Slice, {image, 3, 0, columns * patch[1]});
  image = b.reshape(image, {sizes[0], sizes[1], rows, patch[0], columns, patch[1]});
  const int64_t pixels = sizes[1] * patch[0] * patch[1];
  Value *patches =
      b.reshape(b.permute(image, {0, 2, 4, 1, 3, 5}), {sizes[0], rows * columns, pixels});
  const int64_t zeros = b.args().integer("columns") - pixels;
  return Values{zeros == 0 ? patches
                           : b.call(OpKind::ConstantPadNd, {patches, Arg::ints(Dims{0, zeros})})};
}

} // namespace

const OpDef defs::CgcPatches = {
    .schema = "(Tensor image, int[] patch, int columns) -> Tensor",
    .traits = kPure | kMove,
    .infer = inferCgcPatches,
    .gradient = backwardCgcPatches,
    .decompose = defineCgcPatches,
    .doc = "The patches [PH, PW] of image [B, C, H, W], without overlap and in row-major order: "
           "[B, (H / PH) * (W / PW), columns]. A row holds the C * PH * PW pixels in the order of "
           "a convolution's weight [O, C, PH, PW], followed by zeros. Pixels beyond the last whole "
           "patch are left out.",
};

} // namespace cgc::ir
