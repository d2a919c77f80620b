// ParameterCopies: states that keep parameters in 16 bits, in place of casts in each step.
#pragma once

#include "ir/module.h"
#include "ir/rewriter.h"

#include <memory>
#include <optional>
#include <string>

namespace cgc::passes {

/// The name of the state with the copy of the parameter `path`: "fc.weight:bf16".
std::string copyName(llvm::StringRef path, DType dtype);

/// The dtype of the copy of the parameter `path`: that of the first cast of the f32 parameter, or
/// of a view of it, to 16 bits which a view of the copy could replace. If `isFirst` is false, other
/// buckets have chosen: the dtype of their copy, which each bucket has to write.
std::optional<DType> chooseCopy(const ir::Graph &graph, llvm::StringRef path, bool isFirst);

/// Adds the state with the copy if there is none. Makes the copy, or views of it, take the place of
/// casts of the parameter.
void readCopy(ir::Graph &graph, llvm::StringRef path, DType dtype);

/// A graph that gives the copies of all parameters of `root` their values. Its output is the number
/// of steps. Null if there are no copies.
std::unique_ptr<ir::Graph> refreshCopies(ir::Module &root, DeviceKind device);

} // namespace cgc::passes
