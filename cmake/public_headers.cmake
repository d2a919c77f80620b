# The headers that cmake --install puts into include/cgc, by the component of the package (cgcConfig.cmake.in) that needs
# them. Each list has all that its headers include. The test Examples.BuildAgainstAnInstalledCgc compiles each alone.

# Programs that load and serve plans, in C++ and C.
set(CGC_RUNTIME_HEADERS
  runtime/base/dtype.h
  runtime/base/export.h
  runtime/base/file.h
  runtime/base/state_role.h
  runtime/base/training_names.h
  runtime/base/status.h
  runtime/base/tensor_view.h
  runtime/cgc.h
  runtime/exec/communicator.h
  runtime/exec/engine.h
  runtime/exec/host_function.h
  runtime/exec/memory_pool.h
  runtime/plan/plan.h
  runtime/plan/plan_file.h
  runtime/session/counters.def
  runtime/session/reservation.h
  runtime/session/session.h
  runtime/train/trainer.h)

# Libraries with ops, in C.
set(CGC_OP_LIBRARY_HEADERS runtime/plan/op_library_abi.h)

# Passes and substitutions: the IR, and those parts of passes/ that a pass is written with.
set(CGC_PASS_PLUGIN_HEADERS
  ir/arg.h
  ir/diagnostics.h
  ir/graph.h
  ir/module.h
  ir/offenders.def
  ir/offenders.h
  ir/op_def.h
  ir/op_kind.h
  ir/op_views/op_view.h
  ir/ops.def
  ir/rewriter.h
  ir/schema.h
  ir/text/text.h
  ir/type.h
  ir/verifier.h
  passes/constant_evaluator.h
  passes/constants.h
  passes/explain.h
  passes/host_types.h
  passes/manager/instrumentation.h
  passes/manager/pass_list.h
  passes/manager/pass_manager.h
  passes/manager/pass_options.h
  passes/manager/registered_pass.h
  passes/match.h
  passes/pass.h
  passes/pattern.h
  passes/pipeline.h
  passes/plugin.h
  passes/preconditions.h
  passes/run_patterns.h
  passes/substitution/substitutions.h
  passes/train/optimizer_options.h
  runtime/base/check.h
  runtime/base/dtype.h
  runtime/base/export.h
  runtime/base/fnv1a.h
  runtime/base/optimizer_options.h
  runtime/base/status.h)
