// pixel_shuffle: one copy, between the input [..., C, r, r, H, W] and the result [..., C, H, r, W,
// r] with its dimensions in the input's order.
#include "backend/lowering.h"

#include <algorithm>

namespace cgc::backend {
namespace {

/// Splits dimension `dim` into two, of which the second has `inner` elements.
void split(Place &place, size_t dim, int64_t inner) {
  place.sizes[dim] /= inner;
  place.sizes.insert(place.sizes.begin() + dim + 1, inner);
  place.strides.insert(place.strides.begin() + dim, place.strides[dim] * inner);
}

/// Moves dimension `from` to before dimension `to`, which lies in front of it.
void moveBefore(Place &place, size_t from, size_t to) {
  for (auto *dims : {&place.sizes, &place.strides})
    std::rotate(dims->begin() + to, dims->begin() + from, dims->begin() + from + 1);
}

} // namespace

Status lowerPixelShuffle(const ir::Node &node, BucketBuilder &builder) {
  const int64_t factor = node.arg("upscale_factor").as<int64_t>();
  Place from = builder.place(node.arg("self").value()), to = builder.allocate(*node.result());
  const size_t channels = from.sizes.size() - 3;
  split(from, channels, factor);
  split(from, channels, factor);
  split(to, channels + 2, factor);            // [..., C, H * r, W, r]
  split(to, channels + 1, factor);            // [..., C, H, r, W, r]
  moveBefore(to, channels + 4, channels + 1); // [..., C, r (W), H, r (H), W]
  moveBefore(to, channels + 3, channels + 1); // [..., C, r (H), r (W), H, W]
  builder.copy(from, to);
  return Status::ok();
}

} // namespace cgc::backend
