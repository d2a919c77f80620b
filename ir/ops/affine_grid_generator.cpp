// aten.affine_grid_generator: positions of a grid under affine maps.
#include "ir/op_builder.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferAffineGrid(const InferArgs &args, rules::Results &results) {
  const TensorType &theta = args.tensor("theta");
  const Dims size = args.ints("size");
  if (size.size() != 4 && size.size() != 5)
    return rules::refuse("expected 'size' to be [N, C, H, W] or [N, C, D, H, W], got " +
                         rules::toString(size));
  for (int64_t extent : size)
    if (extent < 1)
      return rules::mismatch("size", "at least 1 in each dimension", extent);
  const auto spatial = static_cast<int64_t>(size.size()) - 2;
  const Dims expected = {size[0], spatial, spatial + 1};
  if (!isFloating(theta.dtype) || theta.sizes != expected)
    return rules::mismatch("theta", rules::toString(expected) + " of a floating dtype", theta);
  Dims sizes = {size[0]};
  sizes.append(size.begin() + 2, size.end());
  sizes.push_back(spatial);
  return rules::addDense(results, theta.dtype, sizes);
}

/// The product of theta with all positions and a 1.
Result<Values> defineAffineGrid(OpBuilder &b) {
  const TensorType &theta = b.input("theta")->tensor();
  const Dims size = b.args().ints("size");
  const Dims extents(size.begin() + 2, size.end());
  const auto spatial = static_cast<int64_t>(extents.size());
  Arg::List positions; // The last dimension comes first.
  int64_t count = 1;
  for (int64_t d = spatial - 1; d >= 0; --d) {
    const int64_t extent = extents[d];
    count *= extent;
    Value *line = extent == 1 ? b.call(OpKind::Full, {Arg::ints(Dims{1}), 0.0, theta.dtype})
                              : b.call(OpKind::Linspace, {-1, 1, extent, theta.dtype});
    if (!b.args().boolean("align_corners") && extent > 1)
      line = b.div(b.mul(line, extent - 1), extent);
    Dims shape(static_cast<size_t>(spatial), 1);
    shape[d] = extent;
    positions.emplace_back(b.expand(b.reshape(line, shape), extents));
  }
  positions.emplace_back(b.call(OpKind::Full, {Arg::ints(extents), 1.0, theta.dtype}));
  Value *all = b.call(OpKind::Stack, {std::move(positions), -1});
  all = b.reshape(all, {count, spatial + 1});
  Value *grid = b.matmul(all, b.transposed(b.input("theta")));
  return Values{b.reshape(grid, b.result()->tensor().sizes)};
}

} // namespace

const OpDef defs::AffineGridGenerator = {
    .schema = "(Tensor theta, int[] size, bool align_corners) -> Tensor",
    .traits = kPure | kGemm,
    .infer = inferAffineGrid,
    .decompose = defineAffineGrid,
    .doc = "The positions in [-1, 1] that theta [N, 2, 3] maps the pixels of images [N, C, H, W] "
           "to: [N, H, W, 2], x first; likewise [N, D, H, W, 3] for three dimensions. With "
           "align_corners, -1 and 1 are the centers of the border pixels, else their outer edges.",
};

} // namespace cgc::ir
