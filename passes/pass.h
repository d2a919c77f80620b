// Pass: anything with a name and a run(). No base class, no registration at start-up: rows are in
// passes.def.
#pragma once

#include "ir/diagnostics.h"
#include "ir/module.h"
#include "passes/constant_evaluator.h"
#include "passes/manager/pass_options.h"
#include "passes/substitution/substitutions.h"
#include "runtime/base/status.h"

#include <concepts>
#include <string_view>

namespace cgc::passes {

enum class Changed : bool { No, Yes };

/// What a pass may know beside the graph. Borrowed pointers outlive the run.
struct PassContext {
  /// The device that the compiled plan is for; baked devices become this one.
  DeviceKind target = DeviceKind::Cpu;
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

/// A pass that takes options: `create` takes those it knows out of what stands in the braces behind
/// its name in a pipeline. A pass without `create` takes none.
template <class P>
concept ConfiguredPass = requires(PassOptions &options) {
  { P::create(options) } -> std::same_as<Result<P>>;
};

/// A pass whose work later stages rely on: --pass-limit does not leave it out. It says
/// `static constexpr bool isRequired = true`.
template <class P>
concept RequiredPass = requires { requires P::isRequired; };

template <class P>
concept ModulePass = requires(P p, ir::Module &module, PassContext &context) {
  { P::name } -> std::convertible_to<std::string_view>;
  { p.run(module, context) } -> std::same_as<Result<Changed>>;
};

} // namespace cgc::passes
