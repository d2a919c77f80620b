// optimizer_rules: the type rules of optimizers, which update lists of tensors.
#pragma once

#include "ir/ops/rules.h"

namespace cgc::ir::rules {

/// The rule of an op that updates the lists `names`, 'parameters' first. Adds a dense result for
/// each of their tensors, list after list. All lists, and 'gradients', have as many tensors, of
/// equal sizes; those of `names` also of equal dtypes. With 'copy', adds a result of that dtype for
/// each parameter. lr, step, scale and skip have no dimensions.
Status optimizerUpdate(const InferArgs &args, Results &results,
                       std::initializer_list<llvm::StringRef> names);

} // namespace cgc::ir::rules
