// SpecializePass: computes types and host values for one bucket.
#pragma once

#include "passes/pass.h"

namespace cgc::passes {

/// From placeholders with types to a graph in which every value has one; inputs that have none are
/// left at their defaults. Host ops and arithmetic on constants are evaluated and vanish, of each
/// branch one side stays; lists become several results; tuples, lists and dicts that are returned
/// are flattened (dict keys become output names, nested ones joined by dots; none is dropped);
/// baked devices become context.target. Everything that cannot be compiled is collected in
/// context.diagnostics (an op without a rule, a rule that refuses, a tensor read on the host, a
/// branch that data decide, an input that is overwritten); what depends on it is not reported
/// again; then it fails with Unsupported. Usage if a call of a submodule is left.
struct SpecializePass {
  static constexpr const char *name = "specialize";
  static constexpr bool isRequired = true;
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

/// Reports of a flat graph what the pass would report for inputs of any type: a method can be
/// judged without shapes. Inputs without a type are tensors, also those whose default is none. What
/// is in a side of a branch that shapes decide is not reported. `graph` is of no use afterwards.
void judge(ir::Graph &graph, DeviceKind target, ir::Diagnostics &diagnostics);

} // namespace cgc::passes
