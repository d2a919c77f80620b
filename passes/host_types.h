// HostTypes: the types of results of submodules that are not compiled.
#pragma once

#include "ir/type.h"
#include "runtime/base/status.h"

#include "llvm/ADT/ArrayRef.h"

#include <functional>
#include <string>
#include <vector>

namespace cgc::passes {

/// The results of a method of a submodule.
struct HostResults {
  std::vector<ir::TensorType> types; ///< Dense.
  bool isTuple = false;              ///< It returns a tuple, even if of one tensor.
};

/// Returns the results of `function`, a submodule's path and its method ("visual.adapter.forward"),
/// for dense inputs of these types.
using HostTypes = std::function<Result<HostResults>(const std::string &function,
                                                    llvm::ArrayRef<ir::TensorType> inputs)>;

} // namespace cgc::passes
