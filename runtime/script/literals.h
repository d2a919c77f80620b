// Literals: tensors that the code of a module has as constants.
#pragma once

namespace cgc::script {

/// What the names of such tensors begin with in the IR and in the weights of a plan. A module has
/// no name for them.
inline constexpr const char *kLiteral = "constant";

} // namespace cgc::script
