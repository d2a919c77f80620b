// PrecisionPass: converts a model's floats to another precision.
#pragma once

#include "passes/pass.h"

namespace cgc::passes {

/// Every floating tensor of a typed graph gets the dtype `to`: inputs, outputs, parameters and the
/// targets of casts included; integers and bools stay. layer_norm in 16 bits is computed in f32
/// with parameters in f32, between casts, which select-norm makes one op of. What casts leave
/// behind goes by `canonicalize`, which runs at the end. Conversion to 16 bits comes after a
/// `fold`, so that constants are rounded once.
///
/// Infinities stay infinities. The largest number of a floating dtype, which masks are made of,
/// becomes the largest of the new one. Any other number that the new dtype cannot hold is refused.
struct PrecisionPass {
  static constexpr const char *name = "precision";
  static constexpr bool isRequired = true; ///< What it was asked for, not an optimization.
  /// `to=f16`, `bf16` or `f32`, which must be given.
  static Result<PrecisionPass> create(PassOptions &options);
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;

  DType to = DType::F32;
};

} // namespace cgc::passes
