// collective_rules: type rules of the ops that all ranks of a distributed training compute
// together.
#pragma once

#include "ir/gradient.h"
#include "ir/ops/rules.h"

namespace cgc::ir::rules {

/// The reductions of collectives, the values of 'reduction'.
inline constexpr llvm::StringRef kSumOfRanks = "sum", kMeanOfRanks = "mean", kMaxOfRanks = "max";

/// Whether 'reduction' is one that `tensors` may have: refuses others.
Status checkReduction(const InferArgs &args);

/// Whether 'shard' is none or the number of a shard: refuses others.
Status checkShard(const InferArgs &args);

/// Adds a dense result like each of 'tensors'.
Status sameSizes(const InferArgs &args, Results &results);

/// Adds a dense result for each of 'tensors', whose dimension 0 is 'ranks' times as large.
Status gathered(const InferArgs &args, Results &results);

/// Adds a dense result for each of 'tensors', whose dimension 0 is the 'ranks'-th part.
Status scattered(const InferArgs &args, Results &results);

/// The gradients of 'tensors': the results of `op`, another collective, of the gradients of the
/// results, with the arguments `more`.
Status collectiveGradient(GradientBuilder &b, OpKind op, std::vector<Arg> more);

} // namespace cgc::ir::rules
