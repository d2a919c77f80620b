// host_math: arithmetic of pointwise ops on numbers, for sizes that are computed while
// specialising.
//
// Python's semantics: ints stay ints, a bool counts as 0 or 1, div is true division. Each function
// takes the arguments of the op of its name, in schema order, and fails with a message on anything
// but numbers, on division by zero and on overflow of an int.
#pragma once

#include "ir/arg.h"
#include "runtime/base/status.h"

#include "llvm/ADT/ArrayRef.h"

namespace cgc::ir::host {

Result<Arg> add(llvm::ArrayRef<Arg> args);
Result<Arg> sub(llvm::ArrayRef<Arg> args);
Result<Arg> rsub(llvm::ArrayRef<Arg> args);
Result<Arg> mul(llvm::ArrayRef<Arg> args);
Result<Arg> div(llvm::ArrayRef<Arg> args);
Result<Arg> floorDivide(llvm::ArrayRef<Arg> args);
Result<Arg> remainder(llvm::ArrayRef<Arg> args);
Result<Arg> pow(llvm::ArrayRef<Arg> args);
Result<Arg> neg(llvm::ArrayRef<Arg> args);
Result<Arg> maximum(llvm::ArrayRef<Arg> args);
Result<Arg> minimum(llvm::ArrayRef<Arg> args);

Result<Arg> eq(llvm::ArrayRef<Arg> args);
Result<Arg> ne(llvm::ArrayRef<Arg> args);
Result<Arg> lt(llvm::ArrayRef<Arg> args);
Result<Arg> le(llvm::ArrayRef<Arg> args);
Result<Arg> gt(llvm::ArrayRef<Arg> args);
Result<Arg> ge(llvm::ArrayRef<Arg> args);

/// Of two bools a bool, else of two ints an int. `bitwiseNot` of a bool is its opposite, as for a
/// tensor.
Result<Arg> bitwiseAnd(llvm::ArrayRef<Arg> args);
Result<Arg> bitwiseOr(llvm::ArrayRef<Arg> args);
Result<Arg> bitwiseNot(llvm::ArrayRef<Arg> args);

/// prim.int: rounds towards zero. prim.float, prim.bool: conversions.
Result<Arg> toInt(llvm::ArrayRef<Arg> args);
Result<Arg> toFloat(llvm::ArrayRef<Arg> args);
Result<Arg> toBool(llvm::ArrayRef<Arg> args);

} // namespace cgc::ir::host
