// rules: helpers of the type rules of several ops: errors, results, dims, broadcasting, type
// promotion.
#pragma once

#include "ir/op_def.h"

#include "llvm/ADT/Twine.h"

namespace cgc::ir::rules {

using Results = llvm::SmallVectorImpl<Inferred>;

// Errors. Messages name an argument of the schema; the caller adds the op and its location.

Status refuse(const llvm::Twine &message);
/// Returns "expected 'weight' to be <expected>, got f32[512,768]".
Status mismatch(llvm::StringRef arg, const llvm::Twine &expected, const TensorType &got);
/// Returns "expected 'dim' to be <expected>, got 7".
Status mismatch(llvm::StringRef arg, const llvm::Twine &expected, int64_t got);
/// Returns "[1,50,768]".
std::string toString(llvm::ArrayRef<int64_t> sizes);

// Results.

/// Refuses negative sizes, and sizes whose bytes overflow an int64, since later code multiplies
/// them unchecked.
Status checkSizes(DType dtype, llvm::ArrayRef<int64_t> sizes);
/// Adds a dense row-major result. Refuses what checkSizes refuses.
Status addDense(Results &results, DType dtype, llvm::ArrayRef<int64_t> sizes);
/// Adds a view of `base` that begins `offset` elements after its first. Refuses what checkSizes
/// refuses, and a memory extent that overflows an int64.
Status addView(Results &results, const TensorType &base, Dims sizes, Dims strides,
               int64_t offset = 0);
/// Adds `base` itself as a view.
Status addAlias(Results &results, const TensorType &base);

// Dimensions.

/// Returns `dim` counted from the front. `rank` 0 counts as 1.
Result<int64_t> wrapDim(llvm::StringRef arg, int64_t dim, int64_t rank);
/// Returns a mask of the dimensions that an `int[]?` argument lists, out of `rank`: all of them if
/// it is none or empty. Refuses duplicates. For rank 0 the result is empty.
Result<llvm::SmallVector<bool, 6>> listedDims(const InferArgs &args, llvm::StringRef arg,
                                              int64_t rank);
/// Returns the sizes after reducing the marked dimensions, which are dropped, or kept as 1 with
/// `keepDim`.
Dims reducedSizes(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<bool> reduced, bool keepDim);
/// Returns the common broadcast sizes; `what` names the operands in the message.
Result<Dims> broadcast(llvm::StringRef what, llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b);
/// Returns true if `from` broadcasts to exactly `to`.
bool broadcastsTo(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to);

/// The channels of a tensor.
struct Channels {
  Dims sizes;  ///< Of a vector [C] that broadcasts to the tensor: [C, 1, ...], or [C].
  Dims others; ///< All other dimensions.
};
/// The channels of [N, C, ...], or of [N, ..., C] if they are `last`.
Channels channelsOf(const TensorType &type, bool last = false);

// Dtypes.

/// Returns the smallest dtype that holds both, as LibTorch promotes tensors of equal category.
DType promote(DType a, DType b);

/// Type promotion over operands. Tensors with dimensions take precedence over 0-d tensors, and
/// these over numbers; an operand of a lower category counts only if its dtype is of a higher kind
/// (bool, integer, floating).
class Promotion {
public:
  void add(const TensorType &type);
  /// Adds a tensor value or a number constant.
  void add(const Arg &operand);
  /// Returns the promoted dtype. At least one operand must have been added.
  DType result() const;

private:
  std::optional<DType> dims_, zeroDim_, number_;
};

/// Refuses arguments among `others` whose dtype differs from that of `arg`. Skips arguments that
/// are none.
Status sameDType(const InferArgs &args, llvm::StringRef arg,
                 std::initializer_list<llvm::StringRef> others);

/// Returns the dtype of a number constant by itself: bool, i64 or f32.
DType numberDType(const Arg &number);

/// The distance from 1 to the next larger number of f32 or f64.
double machineEpsilon(DType dtype);
/// The largest finite number of a floating dtype.
double largestFinite(DType dtype);

// Complete rules.

/// Returns the type after broadcasting and promoting the operands, which are tensors, numbers or
/// none, with at least one tensor.
Result<TensorType> pointwise(const InferArgs &args,
                             std::initializer_list<llvm::StringRef> operands);
/// Adds the result of `pointwise`. Refuses a bool result unless `allowBool`.
Status pointwiseResult(const InferArgs &args, std::initializer_list<llvm::StringRef> operands,
                       Results &results, bool allowBool = true);
/// Refuses an `alpha` of a higher kind than the result, as LibTorch does.
Status checkAlpha(const InferArgs &args, DType result);
/// Elementwise on 'self': keeps floating dtypes, other dtypes give f32.
Status unaryToFloat(const InferArgs &args, Results &results);
/// Elementwise on 'self': keeps any dtype but bool.
Status unaryKeep(const InferArgs &args, Results &results);
/// Elementwise on 'self': floating dtypes only.
Status unaryFloating(const InferArgs &args, Results &results);
/// Elementwise on 'self': keeps any dtype.
Status unaryAny(const InferArgs &args, Results &results);
/// Elementwise on 'self': the result is bool.
Status unaryBool(const InferArgs &args, Results &results);
/// 'self' - 'other' or 'other' - 'self': as pointwise, without bools.
Status difference(const InferArgs &args, Results &results);
/// Maximum or minimum of 'self' and 'other': as pointwise, tensors only.
Status extremum(const InferArgs &args, Results &results);
/// Comparison of 'self' with 'other': the result is bool.
Status compare(const InferArgs &args, Results &results);
/// Like compare, for tensors only.
Status compareTensors(const InferArgs &args, Results &results);
/// Bitwise op on 'self' and 'other': integers and bools.
Status bitwise(const InferArgs &args, Results &results);
/// Elements of the matrices 'self' [..., M, N], any dtype, in their places.
Status matrices(const InferArgs &args, Results &results);

} // namespace cgc::ir::rules
