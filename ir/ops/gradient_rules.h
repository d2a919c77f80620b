// gradient_rules: backward rules that several ops share, and their helpers.
#pragma once

#include "ir/gradient.h"

namespace cgc::ir::gradient {

// Complete rules.

/// The gradient of 'self' is that of the result: copies, casts, broadcasts.
Status identity(GradientBuilder &b);
/// The result has the elements of 'self' in row-major order.
Status reshaped(GradientBuilder &b);
/// 'self' - alpha * 'other', or the reverse: `sign` is 1 or -1.
Status difference(GradientBuilder &b, int sign);
/// beta * 'self' + alpha * (left times right), for matrices that are the arguments of these names.
Status addedProduct(GradientBuilder &b, llvm::StringRef left, llvm::StringRef right);
/// self * sigmoid(factor * self).
Status gated(GradientBuilder &b, double factor);
/// The results are parts of 'self' along 'dim', which `op` joins again.
Status joined(GradientBuilder &b, OpKind op);
/// Maximum or minimum of 'self' and 'other', which get half of the gradient each where they are
/// equal. `loses` holds for self and other where self gets none, `wins` where other gets none.
Status extremum(GradientBuilder &b, OpKind loses, OpKind wins);
/// The extreme elements over the dimensions 'dim', which share the gradient evenly.
Status extremes(GradientBuilder &b);
/// The first result has elements of 'self' along 'dim', the second their indices.
Status picked(GradientBuilder &b);
/// The elements of the first result are those of 'self' along 'dim' at the indices of the second,
/// which may repeat.
Status extremesSoFar(GradientBuilder &b);
/// Sets the gradient of `name`, whose first elements went to the places 'index' along 'dim'.
Status gathered(GradientBuilder &b, llvm::StringRef name);
/// The gradient of 'self' from `grad`, that of its variance.
Status variance(GradientBuilder &b, Value *grad);
/// A convolution of `spatial` dimensions.
Status convolution(GradientBuilder &b, unsigned spatial, bool transposed);
/// 'self' padded by 'padding' in its last `spatial` dimensions with copies of its elements:
/// mirrored ones, or those at its border.
Status padded(GradientBuilder &b, unsigned spatial, bool mirrored);
/// Averages of windows that adapt to 'output_size', of `spatial` dimensions.
Status adaptivePool(GradientBuilder &b, unsigned spatial);

// Helpers.

/// `a` times `factor`: `a` itself for 1.
Value *scaled(OpBuilder &b, Value *a, double factor);
/// `a` raised to `exponent`: `a` itself for 1.
Value *power(OpBuilder &b, Value *a, double exponent);
/// `a` where `condition` does not hold, else 0.
Value *unless(OpBuilder &b, Value *condition, Value *a);
/// The gradient of the result where `low` < 'self' < `high`, else 0.
Value *inside(GradientBuilder &b, double low, double high);
/// The gradient of the result times `factor` * exp(-'self'^2).
Value *gaussian(GradientBuilder &b, double factor);
/// Whether row and column are equal, bool [size, size].
Value *identityMatrix(OpBuilder &b, int64_t size);
/// The transpose of `a` times `b`, summed over all rows: [M, N] for [..., M] and [..., N], whose
/// leading sizes are equal.
Value *productOfRows(OpBuilder &builder, Value *a, Value *b);
/// `a`, a result of a reduction of 'self' over the listed dimensions of the argument `dim`, with
/// these dimensions kept as 1 whether or not the op kept them.
Result<Value *> withReducedDims(GradientBuilder &b, Value *a, llvm::StringRef dim = "dim");
/// The number of elements that a reduction over the argument 'dim' combines into one.
Result<int64_t> reducedCount(const GradientBuilder &b);
/// Whether each of `size` elements is in each window, from the element `begin` to before `end`,
/// both [windows, 1]: bool [windows, size].
Value *insideWindows(OpBuilder &b, Value *begin, Value *end, int64_t size);
/// The product of `weights` [N, K], as a matrix that acts from the right, with the dimension `dim`
/// of `a`, which it takes from N elements to K.
Value *timesAlong(OpBuilder &b, Value *a, int64_t dim, Value *weights);
/// Zeros of the sizes of 'self' with `part`, whose element i along `dim` comes from element
/// start + i * step of 'self'.
Value *placed(GradientBuilder &b, Value *part, int64_t dim, int64_t start, int64_t step);

} // namespace cgc::ir::gradient
