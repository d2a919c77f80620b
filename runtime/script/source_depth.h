// Depth of TorchScript source: how deeply its parts are inside each other.
#pragma once

#include <cstddef>
#include <string_view>

namespace cgc::script {

/// The most parts of TorchScript source that are inside each other: brackets, blocks, `elif`s after
/// an `if`, and the operators, keywords and selections of an expression, which may all be operands
/// of the next. LibTorch's parser, its compiler and the destructors of its trees call themselves
/// for each.
size_t sourceDepth(std::string_view source);

} // namespace cgc::script
