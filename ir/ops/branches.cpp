// Branches: the ops that delimit a branch left undecided by the import, and prim.raise.
#include "ir/op_def.h"

namespace cgc::ir {
namespace {

/// Not pure, so that dce keeps a marker without users.
constexpr OpDef marker(const char *schema, const char *doc) {
  return {.schema = schema, .traits = kHost, .doc = doc};
}

} // namespace

const OpDef defs::PrimIf =
    marker("(any condition) -> Tensor[]",
           "Begins a branch: the nodes up to its prim.else run if the condition is true. A string "
           "condition is the name of a substitution: the nodes are those that it replaced, which "
           "are typed for the comparison with the replacement and not diagnosed. No results.");
const OpDef defs::PrimElse =
    marker("() -> Tensor[]", "Begins the other side of the innermost branch. No results.");
const OpDef defs::PrimEndIf =
    marker("(any[] then, any[] else) -> Tensor[]",
           "Ends the innermost branch. Its results are the elements of the list of the side that "
           "ran; no other node after the branch may use values of its sides.");
const OpDef defs::PrimRaise =
    marker("(any message) -> Tensor[]",
           "The model raises an exception here: refused where a bucket reaches it. No results.");

} // namespace cgc::ir
