// Index bounds: which elements of inputs the ops of a graph read as indices.
#pragma once

#include "backend/bucket_builder.h"

namespace cgc::backend {

/// Bounds the indices that `node` reads, as far as they are elements of inputs: LibTorch's limits
/// for each op. Its arguments are placed.
void boundIndices(const ir::Node &node, BucketBuilder &builder);

/// Notes for `node`, a lowered `where` or `masked_fill`, that it replaces one value of a tensor by
/// 0, if it does: where(x != -100, x, 0). The value is then no index of what reads the result.
void noteReplacedIndex(const ir::Node &node, BucketBuilder &builder);

/// Notes for `node`, lowered, that it adds a number to a tensor of integers, if it does, as in
/// labels - 1.
void noteShiftedIndex(const ir::Node &node, BucketBuilder &builder);

} // namespace cgc::backend
