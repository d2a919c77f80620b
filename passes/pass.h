// Pass: anything with a name and a run(). No base class, no registration at start-up: rows are in
// passes.def.
#pragma once

#include "ir/diagnostics.h"
#include "ir/module.h"
#include "passes/evaluator.h"
#include "passes/substitutions.h"
#include "runtime/base/status.h"

#include <concepts>
#include <optional>
#include <string_view>

namespace cgc::passes {

enum class Changed : bool { No, Yes };

/// What a pass may know beside the graph. Borrowed pointers outlive the run.
struct PassContext {
  /// The device that the compiled plan is for; baked devices become this one.
  DeviceKind target = DeviceKind::Cpu;
  /// What floating tensors become; none leaves the model as it is.
  std::optional<DType> precision;
  /// Runs ops at compile time; null where there is none (then nothing is folded).
  ConstantEvaluator *evaluator = nullptr;
  /// What the user registered; empty by default.
  const Substitutions *substitutions = nullptr;
  /// Where a pass reports what is wrong with the model; it reports all it can find, then fails.
  ir::Diagnostics *diagnostics = nullptr;
};

/// A graph pass changes its graph through ir::GraphRewriter, and of the owning module only by
/// adding constants: buckets run one after the other on copies of one graph that share that module.
template <class P>
concept GraphPass = requires(P p, ir::Graph &graph, PassContext &context) {
  { P::name } -> std::convertible_to<std::string_view>;
  { p.run(graph, context) } -> std::same_as<Result<Changed>>;
};

template <class P>
concept ModulePass = requires(P p, ir::Module &module, PassContext &context) {
  { P::name } -> std::convertible_to<std::string_view>;
  { p.run(module, context) } -> std::same_as<Result<Changed>>;
};

} // namespace cgc::passes
