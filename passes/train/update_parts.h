// UpdateParts: calls of an optimizer on a part of its parameters each.
#pragma once

#include "ir/rewriter.h"

#include "llvm/ADT/ArrayRef.h"

#include <vector>

namespace cgc::passes {

/// The positions in the lists of an update that make a call of their own.
using UpdatePart = std::vector<size_t>;

/// The positions in the lists of an update, in the order in which the graph computes the gradients.
UpdatePart inOrderOfGradients(const ir::Node &update);

/// Replaces `update`, whose lists have the length of the first one or none, by calls for its parts.
/// Returns the calls.
std::vector<ir::Node *> splitUpdate(ir::Node &update, llvm::ArrayRef<UpdatePart> parts,
                                    ir::GraphRewriter &rewriter);

} // namespace cgc::passes
