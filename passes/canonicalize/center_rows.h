// centerRows: evaluates cgc.center_rows, for `fold`.
#pragma once

#include "ir/graph.h"
#include "ir/type.h"

#include <memory>

namespace cgc::passes {

/// Returns the result of the cgc.center_rows node `node` for `weight`, f32 [N, K]. The error of an
/// element is at most 1.5 units in its last place in the node's dtype; the sum of a row is at most
/// one unit of the row's largest element. A row is left unrounded if an element, or an element
/// minus the mean, is not finite.
std::shared_ptr<const ir::TensorData> centerRows(const ir::Node &node,
                                                 const ir::TensorData &weight);

} // namespace cgc::passes
