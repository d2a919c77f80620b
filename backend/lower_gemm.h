// Lowers GEMMs, forward and backward: records the first candidate that takes the operands, and says
// what it leaves of the epilogue.
#pragma once

#include "backend/bucket_builder.h"
#include "backend/gemm.h"

namespace cgc::backend {

/// The operands of an op: x is [..., K], w [N, K], the bias [N], y and the residual are [..., N]. x
/// and w may be transposed matrices, or those of a convolution (GemmProblem::Epilogue::windows).
/// Row statistics are those of ir/ops/row_statistics_rules.h.
using GemmPlaces = GemmOperands<Place>;

/// The part of an epilogue that the record does not fuse. The caller applies it to y in place: the
/// activation, then the residual.
struct UnfusedEpilogue {
  bool activation = false, residual = false;
  bool rowStatistics = false; ///< yStatistics is given and was not written.
};

/// What a GEMM is in the model. The kernels for f16 and bf16 have been measured in layers alone, so
/// that a plan has cuBLASLt's in place of them for other products, until `cgc tune` chooses.
enum class GemmUse : uint8_t { Layer, Product };

/// Adds the record that computes the GEMM with as much of its epilogue as it fuses, and returns the
/// rest, which only an activation, a residual and row statistics may leave. `epilogue` is that of
/// gemmProblem(). Returns nothing and adds nothing if the target is not cuda, if no candidate takes
/// the operands, or if a separate normalization of x is faster.
std::optional<UnfusedEpilogue> lowerGemm(const GemmPlaces &operands,
                                         const GemmProblem::Epilogue &epilogue,
                                         BucketBuilder &builder, GemmUse use = GemmUse::Layer);

/// Whether lowerGemm() adds a record. The places need no storage.
bool lowersToGemm(const GemmPlaces &operands, const GemmProblem::Epilogue &epilogue,
                  const BucketBuilder &builder);

/// Adds the calls of LibTorch for y = x w^T + bias, which compute what lowerGemm() does not.
void callLinear(const GemmPlaces &operands, BucketBuilder &builder);
/// Likewise for y = the convolution of the images x with w + bias. LibTorch reads and writes images
/// with dense channels as they lie.
void callConvolution(const GemmPlaces &operands, const ConvWindows &windows, int64_t groups,
                     BucketBuilder &builder);

} // namespace cgc::backend
