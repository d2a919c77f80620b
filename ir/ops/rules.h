// rules: what the shape rules of several ops share: errors, results, dims, broadcasting, promotion.
#pragma once

#include "ir/op_def.h"

#include "llvm/ADT/Twine.h"

namespace cgc::ir::rules {

using Results = llvm::SmallVectorImpl<Inferred>;

// Errors. Messages name an argument of the schema; the caller adds op and location.

Status refuse(const llvm::Twine &message);
/// "expected 'weight' to be <expected>, got f32[512,768]".
Status mismatch(llvm::StringRef arg, const llvm::Twine &expected, const TensorType &got);
/// "expected 'dim' to be <expected>, got 7".
Status mismatch(llvm::StringRef arg, const llvm::Twine &expected, int64_t got);
/// "[1,50,768]".
std::string toString(llvm::ArrayRef<int64_t> sizes);

// Results.

/// Refuses negative sizes and more bytes than an int64 can count: everything downstream multiplies
/// them.
Status checkSizes(DType dtype, llvm::ArrayRef<int64_t> sizes);
/// Adds a dense row-major result; refuses as checkSizes does.
Status addDense(Results &results, DType dtype, llvm::ArrayRef<int64_t> sizes);
/// Adds a view of `base` that begins `offset` elements after its first; refuses as
/// checkSizes does, and an extent in memory that an int64 cannot count.
Status addView(Results &results, const TensorType &base, Dims sizes, Dims strides,
               int64_t offset = 0);
/// Adds `base` itself as a view.
Status addAlias(Results &results, const TensorType &base);

// Dimensions.

/// `dim` counted from the front; `rank` 0 counts as 1.
Result<int64_t> wrapDim(llvm::StringRef arg, int64_t dim, int64_t rank);
/// Which of `rank` dimensions an `int[]?` argument lists: all if it is none or empty. Refuses
/// duplicates. For rank 0 the result is empty.
Result<llvm::SmallVector<bool, 6>> listedDims(const InferArgs &args, llvm::StringRef arg,
                                              int64_t rank);
/// The sizes after reducing the marked dimensions: dropped, or 1 with `keepDim`.
Dims reducedSizes(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<bool> reduced, bool keepDim);
/// The sizes to which both broadcast; `what` names them in the message.
Result<Dims> broadcast(llvm::StringRef what, llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b);
/// Whether `from` broadcasts to exactly `to`.
bool broadcastsTo(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to);

// Dtypes.

/// The smallest dtype that holds both, as LibTorch promotes tensors of equal rank category.
DType promote(DType a, DType b);

/// Type promotion over operands: tensors with dimensions come before 0-d tensors, these before
/// numbers; a lower category only matters if it is of a higher kind (bool, integer, floating).
class Promotion {
public:
  void add(const TensorType &type);
  /// A tensor value or a number constant.
  void add(const Arg &operand);
  /// At least one operand must have been added.
  DType result() const;

private:
  std::optional<DType> dims_, zeroDim_, number_;
};

/// Refuses an argument among `others` (those that are none are skipped) whose dtype is not that of
/// `arg`.
Status sameDType(const InferArgs &args, llvm::StringRef arg,
                 std::initializer_list<llvm::StringRef> others);

/// The dtype of a number constant by itself: bool, i64 or f32.
DType numberDType(const Arg &number);

// Whole rules.

/// The type after broadcasting and promoting the operands: tensors, numbers or none, at least one
/// tensor.
Result<TensorType> pointwise(const InferArgs &args,
                             std::initializer_list<llvm::StringRef> operands);
/// Adds the result of `pointwise`; refuses a bool result if `allowBool` is not set.
Status pointwiseResult(const InferArgs &args, std::initializer_list<llvm::StringRef> operands,
                       Results &results, bool allowBool = true);
/// Refuses `alpha` of a higher kind than the result, as LibTorch does.
Status checkAlpha(const InferArgs &args, DType result);
/// Argument 'self' elementwise: floating dtypes are kept, others give f32.
Status unaryToFloat(const InferArgs &args, Results &results);
/// Argument 'self' elementwise: any dtype but bool is kept.
Status unaryKeep(const InferArgs &args, Results &results);
/// Argument 'self' elementwise: floating dtypes only.
Status unaryFloating(const InferArgs &args, Results &results);
/// 'self' and 'other' subtracted, either way round: as pointwise, bools refused.
Status difference(const InferArgs &args, Results &results);
/// The larger or smaller of 'self' and 'other': as pointwise, tensors only.
Status extremum(const InferArgs &args, Results &results);
/// 'self' against 'other': bool.
Status compare(const InferArgs &args, Results &results);
/// 'self' with 'other': integers and bools.
Status bitwise(const InferArgs &args, Results &results);

} // namespace cgc::ir::rules
