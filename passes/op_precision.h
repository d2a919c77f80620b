// precisionOf: the ops that autocast computes in 16 bits, and those that it computes in f32.
#pragma once

#include "ir/op_kind.h"

#include <cstdint>

namespace cgc::passes {

/// The dtype that an op wants.
enum class OpPrecision : uint8_t {
  Lower,  ///< 16 bits: matrix products, convolutions and attention.
  Full,   ///< f32: what needs range or precision.
  Either, ///< That of its arguments.
};

/// Returns what PyTorch's autocast for CUDA does with `op` (torch.amp, "Autocast Op Reference").
OpPrecision precisionOf(ir::OpKind op);

} // namespace cgc::passes
