// compile: from an imported module to a plan in memory. `cgc compile` is one caller.
#pragma once

#include "backend/backend.h"
#include "driver/buckets.h"
#include "ir/diagnostics.h"
#include "ir/module.h"
#include "passes/pipeline.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cgc::driver {

struct CompileOptions {
  /// Types of the inputs, by name. A method is compiled if all its inputs without default are here.
  std::vector<InputSpec> inputs;
  /// Values of dimension 0 of every input, one bucket for each; empty: the sizes of `inputs`.
  std::vector<int64_t> batches;
  /// Methods to compile; empty: all whose inputs are given.
  std::vector<std::string> entries;

  DeviceKind target = DeviceKind::Cuda;
  backend::Arch arch = backend::Arch::Sm90a; ///< Of target cuda.
  passes::OptLevel level = passes::OptLevel::O1;
  /// The dtype that floats become; none: the model's own.
  std::optional<DType> precision;
  /// Lets GEMMs of f32 round their operands to TF32. Of target cuda.
  bool tf32 = false;
  /// Lets values that are never alive together share memory.
  bool reusesMemory = true;

  /// Replaces the default pipeline, which `target`, `level` and `precision` choose. Borrowed.
  const passes::Pipeline *pipeline = nullptr;
  /// Have the ops of cgc.library_op.
  std::vector<std::shared_ptr<const OpLibrary>> opLibraries;
  /// Path of the ATen provider (libcgc_aten.so), which folds constants.
  std::string providerPath;

  /// Called before each phase of compile() with its name and with the number of phases.
  std::function<void(const std::string &phase, size_t phases)> onPhase;
};

/// Usage if the options contradict each other. compile() begins with it.
Status check(const CompileOptions &options);

/// Compiles the chosen methods of `root` for each bucket. `root` changes: its methods are inlined,
/// and its parameters must outlive the plan's weights.
///
/// Usage if inputs, batches or entries do not fit the model or the target. Unsupported if a method
/// cannot be compiled: the status names each such method, and `diagnostics` has every cause with
/// its source line. Thread-safe for different modules.
Result<backend::CompiledPlan> compile(ir::Module &root, const CompileOptions &options,
                                      ir::Diagnostics &diagnostics);

/// `status`, or if there are diagnostics, all of them, each once, with the same code.
Status withDiagnostics(Status status, const ir::Diagnostics &diagnostics);

} // namespace cgc::driver
