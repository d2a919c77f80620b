// host_math: pointwise ops on numbers, for sizes that specialize computes.
//
// Python semantics: ints stay ints, a bool counts as 0 or 1, div is true division. Each function
// takes the arguments of the op with its name, in schema order. It fails with a message for an
// argument that is not a number, division by zero, or int overflow.
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
Result<Arg> clamp(llvm::ArrayRef<Arg> args);

Result<Arg> eq(llvm::ArrayRef<Arg> args);
Result<Arg> ne(llvm::ArrayRef<Arg> args);
Result<Arg> lt(llvm::ArrayRef<Arg> args);
Result<Arg> le(llvm::ArrayRef<Arg> args);
Result<Arg> gt(llvm::ArrayRef<Arg> args);
Result<Arg> ge(llvm::ArrayRef<Arg> args);

/// Of a number that stands for a 0-d tensor. LibTorch has computed a float in f32 or f64: a number
/// that the two round to different integers is refused. `to` converts to the dtype of its second
/// argument, and fails for a number that this dtype cannot hold.
Result<Arg> ceil(llvm::ArrayRef<Arg> args);
Result<Arg> floor(llvm::ArrayRef<Arg> args);
Result<Arg> trunc(llvm::ArrayRef<Arg> args);
Result<Arg> round(llvm::ArrayRef<Arg> args);
Result<Arg> sqrt(llvm::ArrayRef<Arg> args);
Result<Arg> identity(llvm::ArrayRef<Arg> args);
Result<Arg> to(llvm::ArrayRef<Arg> args);

/// Two bools give a bool, two ints an int. `bitwiseNot` negates a bool, as for a tensor.
Result<Arg> bitwiseAnd(llvm::ArrayRef<Arg> args);
Result<Arg> bitwiseOr(llvm::ArrayRef<Arg> args);
Result<Arg> bitwiseNot(llvm::ArrayRef<Arg> args);

/// prim.floor and prim.ceil of a number of Python, as an int.
Result<Arg> floorToInt(llvm::ArrayRef<Arg> args);
Result<Arg> ceilToInt(llvm::ArrayRef<Arg> args);
/// prim.int, which rounds towards zero; prim.float; prim.bool.
Result<Arg> toInt(llvm::ArrayRef<Arg> args);
Result<Arg> toFloat(llvm::ArrayRef<Arg> args);
Result<Arg> toBool(llvm::ArrayRef<Arg> args);

} // namespace cgc::ir::host
