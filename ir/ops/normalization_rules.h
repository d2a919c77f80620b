// normalization_rules: the type rule of layer normalization, and the definitions that layer and
// batch normalization share, forward and backward.
#pragma once

#include "ir/op_builder.h"
#include "ir/ops/rules.h"

namespace cgc::ir::rules {

/// Adds the result of normalizing 'input' over its last dimensions, 'normalized_shape', with
/// optional `parameters`.
Status layerNorm(const InferArgs &args, Results &results,
                 llvm::ArrayRef<llvm::StringRef> parameters);
/// Checks optional parameters of norms of the rows of 'input' [..., E]: [E], of its dtype or f32.
Status rowNormParameters(const InferArgs &args, llvm::ArrayRef<llvm::StringRef> parameters);
/// layer_norm of the rows of `x` with such parameters, rounded to the dtype of x. Parameters of f32
/// normalize rows of 16 bits in f32.
Value *rowNorm(OpBuilder &b, Value *x, llvm::StringRef weight, llvm::StringRef bias,
               llvm::StringRef eps);
/// The dtype of means and variances of values of `dtype`: f32 for 16 bits, else the same.
DType statisticsDType(DType dtype);

/// The dimensions of 'normalized_shape', counted from the end.
Dims normalizedDims(const InferArgs &args);

/// Statistics over some dimensions, which stay as 1.
struct Statistics {
  Value *mean;
  Value *variance; ///< Biased.
  Value *rstd;     ///< That of rstdOf().
};
/// 1 / sqrt(variance + eps).
Value *rstdOf(OpBuilder &b, Value *variance, double eps);
Statistics statisticsOf(OpBuilder &b, Value *x, llvm::ArrayRef<int64_t> dims, double eps);
/// (x - mean) * rstd.
Value *normalized(OpBuilder &b, Value *x, Value *mean, Value *rstd);
/// The gradient of x from `grad`, that of y = normalized(x, mean, rstd), whose statistics are those
/// of x over `dims`: rstd * (grad - mean(grad) - y * mean(grad * y)).
Value *normalizedGradient(OpBuilder &b, Value *grad, Value *y, Value *rstd,
                          llvm::ArrayRef<int64_t> dims);
/// x * weight + bias. Both may be null.
Value *affine(OpBuilder &b, Value *x, Value *weight, Value *bias);

/// The results of a cgc.batch_norm_train, which `b` is for, by these statistics for its input `x`,
/// in f32 for 16 bits. `correction` is the factor that makes the variance unbiased.
Values batchNormTrain(OpBuilder &b, Value *x, const Statistics &statistics, const Arg &correction);

} // namespace cgc::ir::rules
