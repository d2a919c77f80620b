// Pipeline: the tables of default passes, and running a pipeline.
#include "passes/pipeline.h"

#include "passes/substitution/op_pattern.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {

namespace {

using Options = std::vector<PassOption>;
using Runs = std::vector<Options>;
using Settings = PipelineSettings;
using enum PipelineKind;

bool selects(const Settings &settings) {
  return settings.target == DeviceKind::Cuda && settings.level != OptLevel::O0;
}

constexpr Condition kAlways = {};
constexpr Condition kHostModule = {"with --host-module",
                                   [](const Settings &s) { return !s.hostModules.empty(); }};
constexpr Condition kPrecision = {"with --precision",
                                  [](const Settings &s) { return s.precision.has_value(); }};
constexpr Condition kSelects = {"for cuda from -O1 on", selects};
constexpr Condition kAutocast = {"with --autocast",
                                 [](const Settings &s) { return s.autocast.has_value(); }};
constexpr Condition kGradCache = {"with --grad-cache",
                                  [](const Settings &s) { return s.microBatches.has_value(); }};
constexpr Condition kDataParallel = {"with --data-parallel or --ranks",
                                     [](const Settings &s) { return s.isDataParallel; }};
constexpr Condition kWholeOptimizer = {
    "with --data-parallel or --ranks, without --shard-optimizer",
    [](const Settings &s) { return s.isDataParallel && !s.shardsOptimizer; }};
constexpr Condition kShardOptimizer = {"with --shard-optimizer",
                                       [](const Settings &s) { return s.shardsOptimizer; }};
constexpr Condition kRanks = {"with --ranks",
                              [](const Settings &s) { return s.ranks.has_value(); }};
constexpr Condition kSyncBatchNorm = {"with --sync-batch-norm",
                                      [](const Settings &s) { return s.synchronizesBatchNorm; }};
constexpr Condition kRecompute = {"with --recompute",
                                  [](const Settings &s) { return !s.recompute.empty(); }};

// Entries of a training plan. `gradient` stands for gradient.first and gradient.next.
constexpr Condition kAll = {"all"};
constexpr Condition kInStep = {"step", [](const Settings &s) { return s.kind == Step; }};
constexpr Condition kMethod = {"step, gradient, evaluate",
                               [](const Settings &s) { return s.kind != Update; }};
constexpr Condition kBackward = {
    "step, gradient", [](const Settings &s) { return s.kind != Update && s.kind != Evaluate; }};
constexpr Condition kAccumulates = {
    "gradient, update", [](const Settings &s) { return s.kind != Step && s.kind != Evaluate; }};
constexpr Condition kUpdates = {
    "step, update", [](const Settings &s) { return s.kind == Step || s.kind == Update; }};

Runs hostCalls(const Settings &settings) {
  Runs runs;
  for (const std::string &glob : settings.hostModules)
    runs.push_back({{"module", glob}});
  return runs;
}

Runs canonicalize(const Settings &settings) {
  const bool narrows = settings.precision && dtypeSize(*settings.precision) == 2;
  return {narrows ? Options{{"casts", "keep"}} : Options()};
}

Runs convert(DType dtype) {
  return {Options{{"to", std::string(dtypeName(dtype))}}};
}

Runs functionalize(const Settings &settings) {
  return {Options{{"mode", settings.kind == Evaluate ? "evaluate" : "step"}}};
}

Runs keepAttention(const Settings &) {
  return {Options{{"attention", "keep"}}};
}

Runs trainConvolutions(const Settings &) {
  return {Options{{"mode", "train"}}};
}

Runs splitBatch(const Settings &settings) {
  return {Options{{"count", std::to_string(*settings.microBatches)}}};
}

Runs splitRanks(const Settings &settings) {
  return {Options{{"count", std::to_string(*settings.ranks)}}};
}

Runs differentiate(const Settings &settings) {
  Options options = {{"loss", std::to_string(settings.loss)}};
  if (settings.autocast == DType::F16)
    options.push_back({"loss-scale", "65536"}); // The first scale of torch.amp.GradScaler.
  return {options};
}

Runs accumulate(const Settings &settings) {
  return {Options{{"mode", settings.kind == FirstGradient  ? "first"
                           : settings.kind == NextGradient ? "next"
                                                           : "mean"}}};
}

Runs recompute(const Settings &settings) {
  return {Options{{"level", settings.recompute}}};
}

/// All of a micro-batch is computed again in any case, so that keeping small values saves nothing.
Runs recomputeMicroBatches(const Settings &) {
  return {Options{{"level", "micro-batches"}, {"least-bytes", "0"}}};
}

constexpr DefaultPass kInference[] = {
    // Once, on the imported module.
    {"host-calls", "first, so that nothing looks into modules that the host program runs", kAlways,
     kHostModule, hostCalls},
    {"module-substitution", "before inline removes the modules"},
    {"inline", "before the passes that take a method for one graph"},
    // For each bucket, on a copy with typed inputs.
    {"specialize", "gives each value the type that later passes read"},
    {"canonicalize", "leaves the one form of each idiom that later passes require", kAlways,
     kAlways, canonicalize},
    {"precision", "before fold, so that constants are rounded once", kAlways, kPrecision,
     [](const Settings &s) { return convert(*s.precision); }},
    {"random-numbers", "after precision, which fixes dtypes"},
    {"fold", "evaluates constants, in their final dtype"},
    {"op-substitution", "after fold, so that patterns see no arithmetic on constants"},
    {"cse", "merges what passes made twice"},
    {"dce", "erases what passes left without users"},
};

constexpr DefaultPass kSelection[] = {
    {"fold-batch-norm", "before merge-convolutions, which adds what is folded"},
    {"merge-convolutions", "before select-convolution, which leaves no convolution to merge"},
    {"select-convolution", "before pack-linears, which packs the linears that it makes"},
    {"pack-linears", "before select-attention, which reads its slices in place"},
    {"select-attention", "after pack-linears, whose slices it reads in place"},
    {"order-rows", "before select-linear, so that residuals are in the order of its rows"},
    {"select-patches", "before select-tokens, which takes patches as rows"},
    {"select-tokens", "after select-patches, whose rows it takes"},
    {"select-embedding", "before select-norm, which would take positions for a residual"},
    {"select-linear", "before select-norm, which takes the residuals that it leaves"},
    {"select-norm", "after the passes that take sums"},
    {"select-rows", "before prune-rows, which moves its op up"},
    {"prune-rows", "after select-rows, whose op it moves up"},
    {"select-norm-linear", "once it is known which rows remain"},
    {"fold", "computes the weights in their new form"},
    {"cse", "merges what passes made twice"},
    {"dce", "erases what passes left without users"},
};

constexpr DefaultPass kTraining[] = {
    // Once, on the imported module.
    {"module-substitution", "before inline removes the modules", kInStep},
    {"inline", "before the passes that take a method for one graph, for all entries", kInStep},
    // From the method to its form in f32, or in f32 and the dtype of autocast.
    {"functional-training", "before the passes that take a graph for a function", kMethod, kAlways,
     functionalize},
    {"specialize", "gives each value the type that later passes read", kMethod},
    {"canonicalize", "leaves the one form of each idiom that later passes require", kMethod},
    {"random-numbers", "after canonicalize, which fixes dtypes", kMethod},
    {"tie-states", "before differentiate, which adds the gradients of all uses", kMethod},
    {"fold", "evaluates the masks that select-attention reads", kMethod, kSelects},
    {"select-attention", "before differentiate, so that its gradient is one kernel", kMethod,
     kSelects},
    {"select-patches", "before differentiate, so that its gradients are products", kMethod,
     kSelects},
    {"select-rows", "before prune-rows, which moves its op up", kMethod, kSelects},
    {"prune-rows", "before differentiate, so that rows that are not pooled have no gradients",
     kMethod, kSelects, keepAttention},
    {"autocast", "before differentiate, so that gradients are cast, too", kMethod, kAutocast,
     [](const Settings &s) { return convert(*s.autocast); }},
    {"select-convolution", "after autocast, which narrows images, and before differentiate",
     kMethod, kSelects, trainConvolutions},
    {"cse", "merges what passes made twice, whose gradients would be taken twice", kMethod},
    // The gradients and what becomes of them.
    {"split-ranks", "before micro-batches, which split what a rank computes", kBackward, kRanks,
     splitRanks},
    {"micro-batches", "before differentiate, which takes the gradients of the whole loss",
     kBackward, kGradCache, splitBatch},
    {"synchronize-batch-norm", "before differentiate, which takes the gradients of its ops",
     kBackward, kSyncBatchNorm},
    {"differentiate", "before weights could be folded", kBackward, kAlways, differentiate},
    {"accumulate", "between differentiate and optimize", kAccumulates, kAlways, accumulate},
    {"average-gradients", "before optimize, which takes the means", kUpdates, kDataParallel},
    {"optimize", "after the passes that make the gradients it takes", kUpdates, kAlways,
     [](const Settings &s) { return Runs{toOptions(s.optimizer)}; }},
    {"fold", "evaluates constants of gradients and updates", kAll},
    {"op-substitution", "after fold, so that patterns see no arithmetic on constants", kAll},
    {"cse", "merges what passes made twice", kAll},
    {"simplify-gradients", "after cse, so that each gradient is there once", kBackward},
    {"select-gradients", "after simplify-gradients, which leaves one sum of each gradient",
     kBackward, kSelects},
    {"select-updates", "after select-gradients, whose op it takes", kBackward, kSelects},
    {"select-train-norm", "after simplify-gradients, which removes casts", kBackward, kSelects},
    {"fuse-batch-norm", "after differentiate, which takes no gradients of its ops", kBackward,
     kSelects},
    {"recompute", "once the uses of activations are known", kBackward, kRecompute, recompute},
    {"recompute", "lets the activations of one micro-batch be in memory at a time", kBackward,
     kGradCache, recomputeMicroBatches},
    {"dce", "erases what passes left without users", kAll},
    {"join-collectives", "once it is known when each gradient is computed", kAll, kDataParallel},
    {"split-updates", "once gradients are in buckets", kUpdates, kWholeOptimizer},
    {"shard-updates", "once gradients are in buckets", kUpdates, kShardOptimizer},
};

void addPasses(PassList &passes, llvm::ArrayRef<DefaultPass> table, const Settings &settings) {
  for (const DefaultPass &row : table)
    if (row.entries.holds(settings) && row.when.holds(settings))
      for (Options &options : row.runs ? row.runs(settings) : Runs(1))
        passes.push_back({row.pass.str(), std::move(options)});
}

} // namespace

llvm::ArrayRef<DefaultPass> inferenceTable() {
  return kInference;
}

llvm::ArrayRef<DefaultPass> selectionTable() {
  return kSelection;
}

llvm::ArrayRef<DefaultPass> trainingTable() {
  return kTraining;
}

PassList defaultPasses(const PipelineSettings &settings) {
  PassList passes;
  if (settings.kind == Inference) {
    addPasses(passes, kInference, settings);
    if (selects(settings))
      addPasses(passes, kSelection, settings);
  } else {
    addPasses(passes, kTraining, settings);
  }
  return passes;
}

PassList selectionPasses() {
  PassList passes;
  addPasses(passes, kSelection, {});
  return passes;
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

PipelineBuilder &PipelineBuilder::setPasses(PassList passes) {
  passes_ = std::move(passes);
  return *this;
}

PipelineBuilder &PipelineBuilder::setPasses(llvm::StringRef text) {
  passes_ = parsePassList(text);
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
  CGC_TRY(passes_.status());
  CGC_ASSIGN_OR_RETURN(PassManager passes, PassManager::create(*passes_, registered_));
  if (!stopAfter_.empty())
    CGC_TRY(passes.stopAfter(stopAfter_));
  return Pipeline(std::move(passes), std::move(instrumentation_), std::move(substitutions_));
}

} // namespace cgc::passes
