// resample_rules: definitions of resampling by lookups along each dimension.
#pragma once

#include "ir/op_builder.h"
#include "ir/ops/window_rules.h"

namespace cgc::ir::rules {

/// Where the element that a result takes lies: at its lower edge, or at its center.
enum class Nearest { Edge, Center };

/// The element of 'self' at each place of the result, of `spatial` dimensions.
Values resampleNearest(OpBuilder &b, unsigned spatial, Nearest nearest);
template <unsigned kSpatial, Nearest kNearest> Result<Values> resampleNearest(OpBuilder &b) {
  return resampleNearest(b, kSpatial, kNearest);
}
/// Interpolates between two elements of 'self' along each of `spatial` dimensions.
Values resampleLinear(OpBuilder &b, unsigned spatial);
template <unsigned kSpatial> Result<Values> resampleLinear(OpBuilder &b) {
  return resampleLinear(b, kSpatial);
}

} // namespace cgc::ir::rules
