// compile: compiles an imported module into a plan in memory; `cgc compile` is one caller.
#pragma once

#include "backend/backend.h"
#include "driver/buckets.h"
#include "driver/entry_groups.h"
#include "ir/diagnostics.h"
#include "ir/input_shapes.h"
#include "ir/module.h"
#include "passes/pipeline.h"

#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace cgc::driver {

/// The passes of passes::defaultPasses() for the target.
struct DefaultPasses {
  passes::OptLevel level = passes::OptLevel::O1;
  /// The dtype that floats are converted to. None: the model's own dtypes.
  std::optional<DType> precision = {};
  /// Globs over paths of submodules, whose calls are left to the host program (`host-calls`).
  std::vector<std::string> hostModules = {};
};

/// Compiles the training step of a method: entry `step` computes the method, the gradients of its
/// loss and the update of its trained parameters, which are states; entry `evaluate` computes the
/// method.
struct TrainOptions {
  std::string method = "forward";
  size_t loss = 0; ///< The output of the method that is the loss.
  OptimizerOptions optimizer = {};
  std::optional<DType> autocast = {}; ///< F16 or BF16: the dtype of matrix products.
  std::string recompute = {};         ///< The level of the pass `recompute`; empty: no such pass.
  /// Adds the entries `gradient.first`, `gradient.next` and `update` (training_names.h).
  bool accumulates = false;
  /// The micro-batches that the step computes one after another, at least 2, each bucket's batch
  /// divided by them. None: the batch is not split.
  std::optional<uint64_t> microBatches = {};
  /// Several ranks run the plan, each on a batch of its own, and average their gradients.
  bool isDataParallel = false;
  /// The ranks, at least 2, that share each bucket's batch and its loss, each with its part of the
  /// rows. Implies isDataParallel. None: any number of ranks, each with a loss of its own.
  std::optional<uint64_t> ranks = {};
  /// Batch norms in training mode take statistics of the batches of all ranks. Only for ranks with
  /// batches of their own.
  bool synchronizesBatchNorm = false;
  /// The ranks divide moments and averages among themselves. Only for several ranks.
  bool shardsOptimizer = false;
};

struct CompileOptions {
  /// Types of the inputs, by name. A method is compiled if all of its inputs without a default are
  /// here.
  std::vector<InputSpec> inputs;
  /// The dtypes and sizes that the methods accept. A method that is absent: any that its ops
  /// accept.
  ir::ShapesOfMethods shapes = {};
  /// Values of dimension 0 of every input, one bucket each. Empty: the sizes of `inputs`.
  std::vector<int64_t> batches;
  /// Methods to compile. Empty: the groups; without groups all methods whose inputs are given.
  std::vector<std::string> entries;
  /// Entries made of several methods, which are compiled beside `entries`.
  std::vector<EntryGroup> entryGroups;

  /// Compiles a training step instead of `entries` and `entryGroups`. `root` has to be imported for
  /// training, and `passes` are the default ones.
  std::optional<TrainOptions> train;

  DeviceKind target = DeviceKind::Cuda;
  backend::Arch arch = backend::Arch::Sm90a; ///< Only for target cuda.
  /// Lets GEMMs of f32 round their operands to TF32. Only for target cuda.
  bool tf32 = false;
  /// Lets values whose lifetimes do not overlap share memory.
  bool reusesMemory = true;

  /// The passes to run: the default ones, or those of a text (passes::parsePassList).
  std::variant<DefaultPasses, std::string> passes;
  /// The registered passes and substitutions, those of pass plug-ins for example. compile() sets
  /// its passes and its instrumentation.
  passes::PipelineBuilder extensions;
  /// Printing, dumping, timing and limiting of the passes. compile() sets origin.target.
  passes::InstrumentationOptions instrumentation;
  /// Receives what `instrumentation` prints. Borrowed.
  llvm::raw_ostream *log = &llvm::errs();

  /// The op libraries that are searched for the ops of cgc.library_op.
  std::vector<std::shared_ptr<const OpLibrary>> opLibraries;
  /// Runs submodules that are left to the host program, to learn the types of their results. Empty:
  /// nobody can, and compiling a call of one fails.
  passes::HostTypes hostTypes;
  /// The folder of libcgc_reference and libcgc_aten, which compute folded constants.
  std::string libraryFolder;

  /// Called before each phase of compile() with its name and with the number of phases.
  std::function<void(const std::string &phase, size_t phases)> onPhase;
  /// Receives what the user of a training plan should know of its step (passes::trainingNotes).
  std::function<void(const std::string &note)> onNote;
};

/// Usage if the options contradict each other, or if `passes` or `instrumentation` names a pass
/// that does not exist. Failed if an extension is invalid. Needs no model; compile() checks the
/// same.
Status check(const CompileOptions &options);

/// Compiles the chosen methods of `root` for each bucket. `root` changes: its methods are inlined,
/// and it gets one for each group.
/// The plan's weights share the memory of its parameters, so `root` may be destroyed, but the
/// library that imported it must stay loaded as long as the weights exist.
///
/// Fails as check() does. Usage, before the first phase, if inputs, batches, entries or groups do
/// not fit the model or its shapes. Unsupported if a method cannot be compiled: the status names
/// each such method, and `diagnostics` has every cause with its source line.
///
/// Each call has a pipeline and an instrumentation of its own. Calls for different modules may run
/// concurrently if they share neither `log` nor an output file of `instrumentation`, and if the
/// functions in their options allow it.
Result<backend::CompiledPlan> compile(ir::Module &root, const CompileOptions &options,
                                      ir::Diagnostics &diagnostics);

/// A status with the code of `status` and the text of all errors in `diagnostics`; `status` itself
/// if it is ok or there are no errors.
Status withDiagnostics(Status status, const ir::Diagnostics &diagnostics);

} // namespace cgc::driver
