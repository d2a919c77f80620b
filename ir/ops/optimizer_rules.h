// optimizer_rules: the type rules of optimizers, which update lists of tensors.
#pragma once

#include "ir/ops/rules.h"

namespace cgc::ir::rules {

/// Adds a dense result for each tensor of the lists `names`, list after list. The first list are
/// the parameters; the others have as many tensors, of their sizes. 'gradients' too. Each must be
/// dense.
Status optimizerUpdate(const InferArgs &args, Results &results,
                       std::initializer_list<llvm::StringRef> names);

} // namespace cgc::ir::rules
