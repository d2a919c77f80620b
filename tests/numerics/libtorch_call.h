// LibTorchCall: runs ops of the IR with LibTorch's functional overloads, as the expected results of
// tests.
#pragma once

#include "ir/graph.h"
#include "ir/op_def.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <functional>
#include <string>
#include <vector>

namespace cgc::test {

/// Gives the tensor of a value.
using TensorOf = std::function<at::Tensor(const ir::Value *)>;

/// Returns the boxed arguments of `overload` for a call of `op`: the arguments of the same name,
/// else LibTorch's defaults. nullopt if the overload does not take them. With `wrapNumbers`, a
/// number where LibTorch takes a tensor becomes a 0-d tensor that does not promote.
std::optional<torch::jit::Stack> stackOf(const c10::OperatorHandle &overload, ir::OpKind op,
                                         llvm::ArrayRef<ir::Arg> args, const TensorOf &tensorOf,
                                         bool wrapNumbers = false);

/// Calls an overload and flattens its results. Throws LibTorch's exceptions.
std::vector<at::Tensor> callBoxed(const c10::OperatorHandle &overload, torch::jit::Stack stack);

/// Runs the graph @g of an IR text node by node. For each op the first functional overload of the
/// same name that takes the arguments is called. Throws std::runtime_error if there is none.
std::vector<at::Tensor> runWithLibTorch(const std::string &text,
                                        const std::vector<at::Tensor> &inputs);

/// Like runWithLibTorch, recorded for autograd where an input requires a gradient.
std::vector<at::Tensor> recordWithLibTorch(const std::string &text,
                                           const std::vector<at::Tensor> &inputs);

} // namespace cgc::test
