// forEachNumberOfTensor: numbers of the host where an op takes only tensors.
#pragma once

#include "ir/op_def.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {

/// Calls `replace(arg)` for each number in `args`, which stands for a 0-d tensor because `op` takes
/// only tensors there, in lists too.
inline void forEachNumberOfTensor(ir::OpKind op, llvm::MutableArrayRef<ir::Arg> args,
                                  llvm::function_ref<void(ir::Arg &)> replace) {
  const auto visit = [&](ir::Arg &arg) {
    if (arg.asNumber())
      replace(arg);
  };
  for (auto [arg, schema] : llvm::zip(args, ir::opSchema(op).args)) {
    if (schema.kind != ir::ArgKind::Tensor)
      continue;
    if (schema.isList && arg.isList())
      llvm::for_each(arg.list(), visit);
    else
      visit(arg);
  }
}

} // namespace cgc::passes
