// centerRows: what cgc.center_rows is, computed by `fold`.
#pragma once

#include "ir/graph.h"
#include "ir/type.h"

#include <memory>

namespace cgc::passes {

/// The result of a cgc.center_rows node for the weight `weight`, f32 [N, K]. What an element is off
/// by is at most one and a half units of its last place in the node's dtype; what a row sums to is
/// at most one unit of its largest element's. A row with an element that is not finite, or so large
/// that less the mean it is not, is not rounded.
std::shared_ptr<const ir::TensorData> centerRows(const ir::Node &node,
                                                 const ir::TensorData &weight);

} // namespace cgc::passes
