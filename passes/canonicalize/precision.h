// PrecisionPass: converts a model's floating dtypes to another precision.
#pragma once

#include "passes/pass.h"

namespace cgc::passes {

/// Converts every floating tensor of a typed graph to the dtype `to`: inputs, outputs, parameters
/// and the targets of casts included. Integers and bools stay. layer_norm in 16 bits is computed in
/// f32 with f32 parameters, between casts, which select-norm merges into one op. Values whose
/// rounding could overflow stay f32 (wide_values.h). Conversion to 16 bits runs `fold` first, so
/// that constants are rounded once, and `canonicalize` last, to remove leftover casts.
///
/// Infinities stay infinities. The largest number of a floating dtype, which masks use, becomes the
/// largest of the new one. Any other number that overflows the new dtype is refused.
struct PrecisionPass {
  static constexpr const char *name = "precision";
  static constexpr bool isRequired = true; ///< The user asked for it; it is not an optimization.
  /// `to=f16`, `bf16` or `f32`; required.
  static Result<PrecisionPass> create(PassOptions &options);
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;

  DType to = DType::F32;
};

} // namespace cgc::passes
