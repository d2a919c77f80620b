// lowerWholeGemm(): lowers a GEMM with all of its epilogue, for cgc.linear and cgc.norm_linear.
#pragma once

#include "backend/lower_gemm.h"

namespace cgc::backend {

/// Adds the records of a GEMM: one with the epilogue that it supports, then the remaining steps in
/// place. Places the row statistics that `node`, the op, has as second result. Returns false if it
/// does not write them and readers need them.
Result<bool> lowerWholeGemm(const ir::Node &node, const GemmPlaces &operands, Activation activation,
                            BucketBuilder &builder);

} // namespace cgc::backend
