// optimizer_rules: the type rule and the definition of optimizers, which update lists of tensors.
#pragma once

#include "ir/op_builder.h"
#include "ir/ops/rules.h"

namespace cgc::ir::rules {

/// The rule of an op that updates the lists `names`, 'parameters' first. Adds a dense result for
/// each of their tensors, list after list. All lists, and 'gradients', have as many tensors, of
/// equal sizes; those of `names` also of equal dtypes. With 'copy', adds a result of that dtype for
/// each parameter. lr, step, scale and skip have no dimensions.
Status optimizerUpdate(const InferArgs &args, Results &results,
                       std::initializer_list<llvm::StringRef> names);

/// The results of calls of the op for the tensors of each dtype, if the lists, of which `lists` are
/// the arguments, have several: a kernel takes one. Nothing if they have one.
std::optional<Values> splitByDType(OpBuilder &b, llvm::ArrayRef<llvm::StringRef> lists);

/// The results of such an op. `update` gets the tensors of one parameter in the lists `names` and
/// its gradient times the scale, in its dtype, and returns their new values, which are converted
/// to the dtype of the old ones. Where skip is true, the old ones stay.
Values updated(OpBuilder &b, llvm::ArrayRef<llvm::StringRef> names,
               llvm::function_ref<Values(llvm::ArrayRef<Value *> old, Value *gradient)> update);

} // namespace cgc::ir::rules
