// OpName: the name that frontend/ops/aten.def has for the target of a node.
#pragma once

#include "llvm/ADT/StringRef.h"

#include <string>

namespace cgc::exported {

struct OpName {
  std::string name;     ///< "aten::add".
  std::string overload; ///< "Tensor"; empty for the overload without a name.
};

/// Returns "aten::add" and "Tensor" for "torch.ops.aten.add.Tensor", and the op on numbers for a
/// function of Python: "aten::mul" for "_operator.mul". The target itself if it is neither.
OpName opNameOf(llvm::StringRef target);

} // namespace cgc::exported
