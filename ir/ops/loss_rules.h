// loss_rules: what losses share, elementwise functions of tensors that are reduced to a number.
#pragma once

#include "ir/op_builder.h"
#include "ir/ops/rules.h"

namespace cgc::ir::rules {

/// The values of at::Reduction, the argument 'reduction'.
enum : int64_t { kNoReduction, kMeanReduction, kSumReduction };

/// Adds the result of a loss of `operands`, tensors of one floating dtype that broadcast, and
/// optional ones: with 'reduction' 0 (none) of their sizes; with 1 (mean) and 2 (sum) without
/// dimensions.
Status loss(const InferArgs &args, std::initializer_list<llvm::StringRef> operands,
            Results &results);
/// As loss() for 'self' and 'target'.
Status pairLoss(const InferArgs &args, Results &results);
/// Adds the result of a loss that has `sizes` before the reduction, likewise.
Status reducedLoss(const InferArgs &args, DType dtype, llvm::ArrayRef<int64_t> sizes,
                   Results &results);

/// As loss() for 'self', a 'target' of its sizes, and optional `weights`, which broadcast to them.
Status weightedLoss(const InferArgs &args, llvm::ArrayRef<llvm::StringRef> weights,
                    Results &results);

/// The definition of the argument 'reduction'.
Values reduced(OpBuilder &b, Value *losses);

} // namespace cgc::ir::rules
