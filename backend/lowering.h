// Lowering: how each op becomes records. The table is in aten_calls.def; an op that needs more than
// a row has a function here, defined in backend/ops.
#pragma once

#include "backend/bucket_builder.h"
#include "ir/graph.h"
#include "runtime/base/status.h"

namespace cgc::backend {

/// Adds the records of `node` and places its results. The results have types and the arguments are
/// placed. Unsupported if cgc cannot run this form of the op; the caller adds the location.
using LowerFn = Status (*)(const ir::Node &node, BucketBuilder &builder);

struct Lowering {
  enum class Kind {
    Host,
    View,
    Into,
    Copied,
    Special,
  };
  Kind kind;
  const char *op = "", *overload = "";
  std::vector<AtenArg> (*extra)() = nullptr;
  LowerFn special = nullptr;
};

/// The row of an op in aten_calls.def.
const Lowering &lowering(ir::OpKind op);

/// The arguments of a call, in schema order.
std::vector<AtenArg> callArgs(const ir::Node &node, BucketBuilder &builder);

/// A 0-d temporary filled with a number, for overloads of LibTorch that take tensors only.
Place scalarTensor(const ir::Arg &number, DType dtype, BucketBuilder &builder);

Status lowerAddLayerNorm(const ir::Node &node, BucketBuilder &builder);
Status lowerArgmax(const ir::Node &node, BucketBuilder &builder);
Status lowerArange(const ir::Node &node, BucketBuilder &builder);
Status lowerCat(const ir::Node &node, BucketBuilder &builder);
Status lowerCenterRows(const ir::Node &node, BucketBuilder &builder);
/// Lowers clamp and clamp_min.
Status lowerClamp(const ir::Node &node, BucketBuilder &builder);
/// Lowers any op whose result holds the elements of argument 0 in order: reshape, flatten,
/// contiguous, clone, to.
Status lowerCopy(const ir::Node &node, BucketBuilder &builder);
Status lowerEmbedding(const ir::Node &node, BucketBuilder &builder);
Status lowerFallback(const ir::Node &node, BucketBuilder &builder);
/// Lowers full and full_like.
Status lowerFull(const ir::Node &node, BucketBuilder &builder);
Status lowerFusedAttention(const ir::Node &node, BucketBuilder &builder);
Status lowerFusedEmbedding(const ir::Node &node, BucketBuilder &builder);
Status lowerFusedLinear(const ir::Node &node, BucketBuilder &builder);
Status lowerLayerNorm(const ir::Node &node, BucketBuilder &builder);
Status lowerLibraryOp(const ir::Node &node, BucketBuilder &builder);
Status lowerLinear(const ir::Node &node, BucketBuilder &builder);
Status lowerMaskedFill(const ir::Node &node, BucketBuilder &builder);
Status lowerMatmul(const ir::Node &node, BucketBuilder &builder);
Status lowerMaxPool2d(const ir::Node &node, BucketBuilder &builder);
Status lowerMean(const ir::Node &node, BucketBuilder &builder);
Status lowerNormLinear(const ir::Node &node, BucketBuilder &builder);
Status lowerNormalize(const ir::Node &node, BucketBuilder &builder);
Status lowerPatches(const ir::Node &node, BucketBuilder &builder);
Status lowerPow(const ir::Node &node, BucketBuilder &builder);
Status lowerQuickGelu(const ir::Node &node, BucketBuilder &builder);
Status lowerRows(const ir::Node &node, BucketBuilder &builder);
Status lowerRsub(const ir::Node &node, BucketBuilder &builder);
Status lowerSoftmax(const ir::Node &node, BucketBuilder &builder);
Status lowerStack(const ir::Node &node, BucketBuilder &builder);
Status lowerTokens(const ir::Node &node, BucketBuilder &builder);
Status lowerWhere(const ir::Node &node, BucketBuilder &builder);

} // namespace cgc::backend
