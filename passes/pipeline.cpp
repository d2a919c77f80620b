// Pipeline: the default passes of each phase, in order, and running them.
#include "passes/pipeline.h"

#include "passes/substitution/op_pattern.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace cgc::passes {

std::string defaultPasses(DeviceKind target, OptLevel level, std::optional<DType> precision,
                          llvm::ArrayRef<std::string> hostModules) {
  std::string hostCalls;
  for (const std::string &glob : hostModules)
    hostCalls += (hostCalls.empty() ? "" : ",") + ("host-calls{module=" + glob + "}");
  const std::string convert =
      precision ? "precision{to=" + std::string(dtypeName(*precision)) + "}" : "";
  const bool narrows = precision && dtypeSize(*precision) == 2;
  const llvm::StringRef phases[] = {
      // Once, on the imported module:
      hostCalls,             // calls of submodules that the host program runs
      "module-substitution", // extension point: empty unless something is registered
      "inline",              // every method of the root becomes one flat graph
      // For each bucket, on a copy with typed inputs:
      "specialize", // sizes, dtypes and host arithmetic
      // one form for each idiom: attention, views, in-place ops
      narrows ? "canonicalize{casts=keep}" : "canonicalize",
      convert,           // converts floating dtypes to the requested precision
      "random-numbers",  // random ops as functions of a seed and an offset
      "fold",            // evaluates constants
      "op-substitution", // extension point: empty unless something is registered
      "cse",
      "dce",
  };
  auto chosen =
      llvm::make_filter_range(phases, [](llvm::StringRef phase) { return !phase.empty(); });
  std::string passes = llvm::join(chosen, ",");
  bool selects = target == DeviceKind::Cuda && level != OptLevel::O0;
  return selects ? passes + "," + selectionPasses() : passes;
}

namespace {
/// The passes from the method to its form in f32, or in f32 and `autocast`. Attention and patches
/// are selected before their gradients, which are one kernel and products, and rows that are not
/// pooled are not computed.
std::string methodPasses(llvm::StringRef mode, const TrainingPipeline &training) {
  const std::string select =
      training.selects()
          ? "fold,select-attention,select-patches,select-rows,prune-rows{attention=keep},"
          : "";
  const std::string cast =
      training.autocast ? "autocast{to=" + std::string(dtypeName(*training.autocast)) + "}," : "";
  return "functional-training{mode=" + mode.str() +
         "},specialize,canonicalize,random-numbers,tie-states," + select + cast + "cse,";
}

/// The passes of a step from the method on, of which `use` uses the gradients.
std::string stepPasses(const TrainingPipeline &training, llvm::StringRef use) {
  const std::string select =
      training.selects() ? "select-gradients,select-updates,select-train-norm,fuse-batch-norm,"
                         : "";
  const std::string again =
      training.recompute.empty() ? "" : "recompute{level=" + training.recompute + "},";
  const std::string split =
      training.microBatches ? "micro-batches{count=" + std::to_string(*training.microBatches) + "},"
                            : "";
  // All of a micro-batch is computed again in any case, so that keeping small values saves nothing.
  const std::string splitAgain =
      training.microBatches ? "recompute{level=micro-batches,least-bytes=0}," : "";
  // The first scale of torch.amp.GradScaler.
  const std::string scale = training.autocast == DType::F16 ? ",loss-scale=65536" : "";
  return methodPasses("step", training) + split +
         "differentiate{loss=" + std::to_string(training.loss) + scale + "}," + use.str() +
         ",fold,op-substitution,cse,simplify-gradients," + select + again + splitAgain + "dce";
}
} // namespace

std::string trainingPasses(const TrainingPipeline &training) {
  return "module-substitution,inline," +
         stepPasses(training, "optimize{" + training.optimizer + "}");
}

std::string gradientPasses(const TrainingPipeline &training, bool isFirst) {
  return stepPasses(training, std::string("accumulate{mode=") + (isFirst ? "first" : "next") + "}");
}

std::string updatePasses(llvm::StringRef optimizer) {
  return "accumulate{mode=mean},optimize{" + optimizer.str() + "},fold,op-substitution,cse,dce";
}

std::string evaluationPasses(const TrainingPipeline &training) {
  return methodPasses("evaluate", training) + "fold,op-substitution,cse,dce";
}

std::string selectionPasses() {
  static constexpr llvm::StringRef kPhases[] = {
      "fold-batch-norm",  // convolutions that normalize
      "pack-linears",     // query, key and value from one GEMM
      "select-attention", // token-major results, flags for masks
      "select-patches",   // convolutions as GEMMs
      "select-tokens",
      "select-embedding",
      "select-linear",      // activations and residuals
      "select-norm",        // remaining residuals; normalized vectors
      "select-rows",        // pooling by one row
      "prune-rows",         // rows that are not pooled are not computed
      "select-norm-linear", // GEMMs that normalize their rows
      "fold",               // weights in their new form
      "cse",
      "dce",
  };
  return llvm::join(llvm::ArrayRef(kPhases), ",");
}

Status Pipeline::prepare(ir::Module &root, PassContext context) const {
  context.substitutions = &substitutions_;
  return passes_.runModulePasses(root, context, instrumentation_);
}

Result<std::unique_ptr<ir::Graph>> Pipeline::specialize(const ir::Graph &entry, std::string name,
                                                        llvm::ArrayRef<ir::Type> inputs,
                                                        PassContext context) const {
  std::unique_ptr<ir::Graph> graph = entry.clone(std::move(name));
  std::vector<ir::Value *> placeholders = graph->inputs();
  if (placeholders.size() != inputs.size())
    return Status(Code::Usage, "entry '" + entry.name() + "' takes " +
                                   std::to_string(placeholders.size()) + " inputs, not " +
                                   std::to_string(inputs.size()));
  for (unsigned i = 0; i < inputs.size(); ++i) {
    if (inputs[i].isDynamic())
      continue;
    ir::TensorType type = inputs[i].tensor();
    type.device = context.target;
    placeholders[i]->setType(std::move(type));
    placeholders[i]->node()->setArgs({});
  }
  CGC_TRY(run(*graph, context));
  return graph;
}

Status Pipeline::run(ir::Graph &graph, PassContext context) const {
  context.substitutions = &substitutions_;
  return passes_.runGraphPasses(graph, context, instrumentation_);
}

Status Pipeline::checkExplained() const {
  const std::string &explained = instrumentation_.explained();
  if (explained.empty() || passes_.contains(explained))
    return Status::ok();
  return {Code::Usage, "pass '" + explained + "' is to be explained and does not run: the " +
                           (passes_.toString().empty() ? "pipeline has no passes"
                                                       : "pipeline is " + passes_.toString())};
}

PipelineBuilder &PipelineBuilder::registerModuleSubstitution(ModuleSubstitution substitution) {
  substitutions_.modules.push_back(std::move(substitution));
  return *this;
}

PipelineBuilder &PipelineBuilder::registerOpSubstitution(OpSubstitution substitution) {
  substitutions_.ops.push_back(std::move(substitution));
  return *this;
}

PipelineBuilder &PipelineBuilder::setPasses(std::string passes) {
  passes_ = std::move(passes);
  return *this;
}

PipelineBuilder &PipelineBuilder::setStopAfter(std::string passOrPosition) {
  stopAfter_ = std::move(passOrPosition);
  return *this;
}

PipelineBuilder &PipelineBuilder::setInstrumentation(Instrumentation instrumentation) {
  instrumentation_ = std::move(instrumentation);
  return *this;
}

Result<Pipeline> PipelineBuilder::build() {
  for (size_t i = 0; i < registered_.size(); ++i)
    if (const std::string &name = registered_[i].name;
        checkPassName(name, llvm::ArrayRef(registered_).take_front(i)).isOk())
      return Status(Code::Failed, "two passes are called '" + name + "'");
  for (const ModuleSubstitution &substitution : substitutions_.modules)
    if (!substitution.replaceBody == !substitution.replaceCall)
      return Status(Code::Failed, "substitution '" + substitution.name +
                                      "' needs a function that replaces the body, or one that "
                                      "replaces calls");
  for (const OpSubstitution &substitution : substitutions_.ops)
    CGC_TRY(OpPattern::create(substitution).status());
  CGC_ASSIGN_OR_RETURN(PassManager passes, PassManager::parse(passes_, registered_));
  if (!stopAfter_.empty())
    CGC_TRY(passes.stopAfter(stopAfter_));
  return Pipeline(std::move(passes), std::move(instrumentation_), std::move(substitutions_));
}

} // namespace cgc::passes
