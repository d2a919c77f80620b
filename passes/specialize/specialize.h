// SpecializePass: computes types and host values for one bucket.
#pragma once

#include "passes/pass.h"

#include <optional>
#include <string>

namespace cgc::passes {

/// Turns a graph with typed placeholders into one in which every value has a type. Inputs without a
/// type keep their defaults. Host ops and arithmetic on constants are evaluated and erased, and
/// each branch keeps only its taken side. Lists become several results. Returned tuples, lists and
/// dicts are flattened; dict keys become output names, nested keys are joined with dots, and no
/// output is dropped. Devices in the model become context.target. Collects everything that cannot
/// be compiled in context.diagnostics (an op without a rule, a rule that refuses, a tensor read on
/// the host, a branch that depends on data, an input that is overwritten), without repeating errors
/// for values that depend on a reported one, then fails with Unsupported. Usage if a call of a
/// submodule is left.
struct SpecializePass {
  static constexpr const char *name = "specialize";
  static constexpr bool isRequired = true;
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

/// Where a method depends on the size of the batch by more than sizes that are multiples of it.
struct BatchUse {
  std::string op;
  ir::Loc loc;
  std::string reason; ///< "it compares the size of the batch with another number"
};

/// Specializes `graph`, whose inputs have `batch` rows, as the pass does. `batch` is a prime above
/// all sizes that do not come from the batch. Returns the first use of the size of the batch that
/// may give another computation for another batch, even if the pass fails after it.
Result<std::optional<BatchUse>> findBatchUse(ir::Graph &graph, PassContext &context, int64_t batch);

/// Reports the errors that the pass would report for a flat graph with inputs of any type, so that
/// a method can be diagnosed without shapes. Inputs without a type count as tensors, including
/// those whose default is none. Does not report errors in a branch that shapes decide. `graph` must
/// not be used afterwards.
void diagnose(ir::Graph &graph, DeviceKind target, ir::Diagnostics &diagnostics);

} // namespace cgc::passes
