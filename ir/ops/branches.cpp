// Branches: the markers of a branch that the import cannot decide, and of a failing assertion.
#include "ir/op_def.h"

namespace cgc::ir {
namespace {

/// Not pure: a marker stays although nobody uses it.
constexpr OpDef marker(const char *schema, const char *doc) {
  return {schema, kHost, nullptr, nullptr, doc};
}

} // namespace

const OpDef defs::PrimIf = marker("(any condition) -> Tensor[]",
                                  "Begins a branch: the nodes up to its prim.else run if the "
                                  "condition is true. With a string, the name of a substitution, "
                                  "they are what it replaced: they get types, to be compared with "
                                  "those of the replacement, and are not judged. No results.");
const OpDef defs::PrimElse = marker("() -> Tensor[]", "Begins the other side of the innermost "
                                                      "branch. No results.");
const OpDef defs::PrimEndIf =
    marker("(any[] then, any[] else) -> Tensor[]",
           "Ends the innermost branch. Its results are the elements of the list of the side that "
           "ran; no other node behind the branch sees values of its sides.");
const OpDef defs::PrimRaise =
    marker("(any message) -> Tensor[]", "The model raises an exception here: refused where a "
                                        "bucket reaches it. No results.");

} // namespace cgc::ir
