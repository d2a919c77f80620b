// Pipeline: the default phases, in order, and how they are run.
#include "passes/pipeline.h"

#include "llvm/ADT/StringExtras.h"

namespace cgc::passes {

std::string defaultPasses(DeviceKind target, OptLevel level) {
  // Once, on the imported module:
  static constexpr llvm::StringRef kPhases[] = {
      "module-substitution", // extension point: empty unless something is registered
      "inline",              // every method of the root becomes one flat graph
      // For each bucket, on a copy with typed inputs:
      "specialize",      // sizes, dtypes and host arithmetic
      "canonicalize",    // one form for each idea: attention, views, in-place ops
      "precision",       // floats become what the user asked for; nothing if that is nothing
      "fold",            // constants are computed now
      "op-substitution", // extension point: empty unless something is registered
      "cse",
      "dce",
  };
  std::string passes = llvm::join(llvm::ArrayRef(kPhases), ",");
  bool selects = target == DeviceKind::Cuda && level != OptLevel::O0;
  return selects ? passes + "," + selectionPasses() : passes;
}

std::string selectionPasses() {
  static constexpr llvm::StringRef kPhases[] = {
      "pack-linears",     // query, key and value from one product
      "select-attention", // token-major results, flags for masks
      "select-patches",   // convolutions as products
      "select-tokens",
      "select-embedding",
      "select-linear",      // activations and residuals
      "select-norm",        // what is left of residuals; normalised vectors
      "select-rows",        // pooling by one row
      "prune-rows",         // what is not pooled is not computed
      "select-norm-linear", // products that normalise their rows
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

PipelineBuilder &PipelineBuilder::setInstrumentation(Instrumentation instrumentation) {
  instrumentation_ = std::move(instrumentation);
  return *this;
}

Result<Pipeline> PipelineBuilder::build() {
  CGC_ASSIGN_OR_RETURN(PassManager passes, PassManager::parse(passes_));
  return Pipeline(std::move(passes), std::move(instrumentation_), std::move(substitutions_));
}

} // namespace cgc::passes
