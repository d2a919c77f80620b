// Pass: the concepts of module and graph passes. A pass has a name and a run(); it needs no base
// class and no static registration, since passes.def lists all passes.
#pragma once

#include "ir/diagnostics.h"
#include "ir/module.h"
#include "passes/constant_evaluator.h"
#include "passes/explain.h"
#include "passes/host_types.h"
#include "passes/manager/pass_options.h"
#include "passes/substitution/substitutions.h"
#include "runtime/base/status.h"

#include <concepts>
#include <string_view>

namespace cgc::passes {

enum class Changed : bool { No, Yes };

/// Environment of a pass. Borrowed pointers outlive the run.
struct PassContext {
  /// The device that the plan is compiled for; devices in the model become this one.
  DeviceKind target = DeviceKind::Cpu;
  /// Evaluates ops at compile time; null disables folding.
  ConstantEvaluator *evaluator = nullptr;
  /// Substitutions that the user registered; none by default.
  const Substitutions *substitutions = nullptr;
  /// Runs submodules that are not compiled, to learn the types of their results; null if nobody
  /// can.
  const HostTypes *hostTypes = nullptr;
  /// Receives the errors of the model. A pass reports all that it finds, then fails.
  ir::Diagnostics *diagnostics = nullptr;
  /// Receives the candidates that the patterns of the running pass do not match; null unless
  /// --explain names the pass. runPatterns reports them once it has reached its fixed point.
  const MatchListener *matchFailed = nullptr;
};

/// A graph pass changes its graph through ir::GraphRewriter, and the owning module only by adding
/// constants: the buckets of one graph are copies that share the module and run one after another.
template <class P>
concept GraphPass = requires(P p, ir::Graph &graph, PassContext &context) {
  { P::name } -> std::convertible_to<std::string_view>;
  { p.run(graph, context) } -> std::same_as<Result<Changed>>;
};

/// A pass with options. `create` takes the options that it knows. A pass without `create` has no
/// options.
template <class P>
concept ConfiguredPass = requires(PassOptions &options) {
  { P::create(options) } -> std::same_as<Result<P>>;
};

/// A pass whose result later stages rely on: --pass-limit does not skip it. Declares `static
/// constexpr bool isRequired = true`.
template <class P>
concept RequiredPass = requires { requires P::isRequired; };

/// A pass that reports to PassContext::matchFailed. Declares `static constexpr bool explains =
/// true`.
template <class P>
concept ExplainingPass = requires { requires P::explains; };

template <class P>
concept ModulePass = requires(P p, ir::Module &module, PassContext &context) {
  { P::name } -> std::convertible_to<std::string_view>;
  { p.run(module, context) } -> std::same_as<Result<Changed>>;
};

} // namespace cgc::passes
