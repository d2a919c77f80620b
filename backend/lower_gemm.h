// Lowers GEMMs: records the way that is chosen for a GEMM, and says what it leaves of the epilogue.
#pragma once

#include "backend/bucket_builder.h"
#include "backend/gemm.h"
#include "runtime/base/status.h"

namespace cgc::backend {

/// The operands of an op: x is [..., K], w [N, K], the bias [N], y and the residual are [..., N].
/// All have one floating dtype; y is dense. Row statistics are those of
/// ir/ops/row_statistics_rules.h.
using GemmPlaces = GemmOperands<Place>;

/// The part of an epilogue that no record fuses. The caller applies it to y in place: the
/// activation, then the residual.
struct UnfusedEpilogue {
  bool activation = false, residual = false;
  bool rowStatistics = false; ///< yStatistics is given and was not written.
};

/// Adds the record that computes the GEMM with as much of its epilogue as it fuses, and returns the
/// rest. Unsupported if nothing can compute the GEMM.
Result<UnfusedEpilogue> lowerGemm(const GemmPlaces &operands, Activation activation,
                                  BucketBuilder &builder);

/// The operands of y = a b^T + bias: matrices a [M, K], b [N, K] and y [M, N].
struct SmallGemm {
  Place a, b;
  std::optional<Place> bias = {};
  Place y;
  std::optional<Place> sums = {}; ///< [M]: the sums of the rows of a.
};
/// A step of SGD whose gradients are the y and the sums of a SmallGemm without a bias. These places
/// are then those of the new weight and the new bias.
struct SmallGemmUpdate {
  Place weight;
  std::optional<Place> bias = {};
  Place lr; ///< f32.
  double weightDecay = 0;
  std::optional<Place> step = {}, nextStep = {}; ///< i64: the second becomes the first + 1.
};
/// Adds a launch of a kernel in f32 for a product that is so small that launches and loads, not
/// multiplications, take its time. Returns false and adds nothing if the product is larger or if
/// the kernel does not take the operands (runtime/kernels/gemm/gemm_f32.h).
bool lowerSmallGemm(const SmallGemm &gemm, BucketBuilder &builder,
                    const std::optional<SmallGemmUpdate> &update = {});

/// Adds the record that computes result = a b for matrices a [M, K] and b [K, N] with dense rows or
/// columns, of one floating dtype, and a result [M, N] of that dtype or, for 16 bits, f32: of
/// lowerSmallGemm(), or a call of cuBLASLt. Returns false and adds nothing if the target is not
/// cuda or the places are others.
bool lowerProduct(const Place &a, const Place &b, const Place &result, BucketBuilder &builder);

/// Lowers the GEMM with the rows of x normalized first (GemmProblem::Epilogue::normEps), by means
/// of xStatistics. There is no residual. Adds the record of one kernel that computes all of it and
/// writes yStatistics, if given. Returns false, without a record, if no kernel can or if a separate
/// layer_norm and a GEMM are faster.
bool lowerNormGemm(const GemmPlaces &operands, Activation activation, double eps,
                   BucketBuilder &builder);

/// Whether lowerNormGemm() adds a record. The places need no storage.
bool lowersToNormGemm(const GemmPlaces &operands, Activation activation, double eps,
                      const BucketBuilder &builder);

} // namespace cgc::backend
