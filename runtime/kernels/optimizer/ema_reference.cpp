// Reference of ema_f32.
#include "runtime/kernels/optimizer/ema.h"
#include "runtime/kernels/optimizer/reference_groups.h"

namespace cgc::reference {
namespace {

void ema(const ReferenceArguments &a) {
  const auto weight = static_cast<float>(1 - a.floats[0]), rest = static_cast<float>(a.floats[0]);
  const bool skips = a.reads[0].data && *dataOf<Bool>(a.reads[0]);
  forGroups(a, kEmaShape, skips,
            [&](const Element &at) { at.write(0, lerp(at.read(0), at.read(1), weight, rest)); });
}

} // namespace

CGC_REFERENCE(ema_f32, ema)

} // namespace cgc::reference
