// aten.pixel_shuffle: channels become pixels.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferPixelShuffle(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  const int64_t factor = args.integer("upscale_factor");
  if (factor < 1 || factor > 1 << 15)
    return rules::mismatch("upscale_factor", "in [1, 32768]", factor);
  const int64_t square = factor * factor;
  if (self.rank() < 3 || self.sizes[self.rank() - 3] % square != 0 ||
      self.sizes[self.rank() - 3] == 0)
    return rules::mismatch("self", "[..., C * " + llvm::Twine(square) + ", H, W]", self);
  Dims sizes = self.sizes;
  auto image = llvm::MutableArrayRef(sizes).take_back(3);
  image[0] /= square;
  for (int64_t &size : image.drop_front())
    if (__builtin_mul_overflow(size, factor, &size))
      return rules::refuse("the result would be too large");
  return rules::addDense(results, self.dtype, sizes);
}

} // namespace

const OpDef defs::PixelShuffle = {
    .schema = "(Tensor self, int upscale_factor) -> Tensor",
    .traits = kPure | kMove,
    .infer = inferPixelShuffle,
    .batch = batch::allButLast<3>,
    .gradient = [](GradientBuilder &b) -> Status {
      const Dims &sizes = b.grad()->tensor().sizes;
      const int64_t factor = b.arg("upscale_factor").as<int64_t>(),
                    leading = static_cast<int64_t>(sizes.size()) - 2;
      Dims parts(sizes.begin(), sizes.end() - 2), order;
      parts.append({sizes[leading] / factor, factor, sizes[leading + 1] / factor, factor});
      for (int64_t d = 0; d < leading; ++d)
        order.push_back(d);
      order.append({leading + 1, leading + 3, leading, leading + 2});
      Value *grad = b.call(OpKind::Permute, {b.reshape(b.grad(), parts), Arg::ints(order)});
      b.set("self", b.reshape(grad, b.input("self")->tensor().sizes));
      return Status::ok();
    },
    .doc = "self [..., C * r * r, H, W] as [..., C, H * r, W * r]: the r * r channels of a pixel "
           "become a "
           "square of pixels.",
};

} // namespace cgc::ir
