// Vocabulary: the values that an integer input may have because it indexes an embedding.
#pragma once

#include "ir/graph.h"

namespace cgc::tool {

/// The fewest rows of the embeddings that `input` of a specialised graph indexes, through views and
/// casts; 0 if it indexes none.
int64_t embeddingBound(const ir::Graph &graph, const ir::Value &input);

} // namespace cgc::tool
