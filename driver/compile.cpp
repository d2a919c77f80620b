// compile: chooses buckets, runs the pipeline, specializes one graph per bucket, and lowers them to
// a plan.
#include "driver/compile.h"

#include "driver/batch_rows.h"
#include "driver/runtime_evaluator.h"
#include "ir/op_def.h"
#include "passes/train/differentiate.h"
#include "passes/train/parameter_copies.h"
#include "passes/train/training_notes.h"
#include "runtime/base/training_names.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"

#include <fmt/format.h>

#include <algorithm>

namespace cgc::driver {

namespace {

using passes::PipelineKind;

/// For example "image=f32[4,3,224,224], text=i64[4,77]".
std::string describeInputs(const BucketSpec &bucket) {
  std::string text;
  for (const InputSpec &input : bucket.inputs)
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", input.name,
                        ir::toString(ir::TensorType::dense(input.dtype, input.sizes)));
  return text;
}

/// Reports the beginning of each phase to the caller.
struct Phases {
  const CompileOptions &options;
  size_t count;
  void begin(const std::string &phase) const {
    if (options.onPhase)
      options.onPhase(phase, count);
  }
};

/// For example "encode_image for image=f32[4,3,224,224] (dimension 0 is the batch size)".
std::string describeBucket(const BucketSpec &bucket, bool batched) {
  return fmt::format("{} for {}{}", bucket.entry, describeInputs(bucket),
                     batched ? " (dimension 0 is the batch size)" : "");
}

/// Whether an op on tensors rejects its argument types. Wrong input types may be the cause.
bool isOfTypes(const ir::Diagnostic &error) {
  const std::optional<ir::OpKind> op = ir::parseOpName(error.op);
  return error.cause == ir::Cause::None && op && *op != ir::OpKind::CgcHostCall &&
         (ir::opDef(*op).infer || *op == ir::OpKind::Size);
}

/// Entries of the plan that one pipeline makes: one for each bucket, or `update` alone.
struct Stage {
  PipelineKind kind;
  passes::Pipeline pipeline;
  /// EntryBucket::branches. Micro-batches that ran at the same time would each need memory.
  bool branches;
};

/// The name of the entry for a bucket of `method`.
std::string entryName(PipelineKind kind, const std::string &method) {
  switch (kind) {
  case PipelineKind::Inference:
    break;
  case PipelineKind::Step:
    return kStepEntry;
  case PipelineKind::FirstGradient:
    return kFirstGradientEntry;
  case PipelineKind::NextGradient:
    return kNextGradientEntry;
  case PipelineKind::Update:
    return kUpdateEntry;
  case PipelineKind::Evaluate:
    return kEvaluateEntry;
  }
  return method;
}

/// One specialized graph for each bucket. Tries every entry: the failure names each entry that
/// cannot be compiled, and every offender once.
Result<std::vector<std::unique_ptr<ir::Graph>>>
specializeAll(const ir::Module &root, const std::vector<BucketSpec> &buckets, bool batched,
              const Stage &stage, const passes::PassContext &context, const Phases &phases) {
  std::vector<std::unique_ptr<ir::Graph>> graphs;
  std::string failedEntry, failures;
  for (const BucketSpec &bucket : buckets) {
    const std::string description = describeBucket(bucket, batched);
    phases.begin("specialize " + description);
    if (bucket.entry == failedEntry)
      continue;
    const size_t index = std::count_if(buckets.data(), &bucket, [&](const BucketSpec &earlier) {
      return earlier.entry == bucket.entry;
    });
    const size_t known = context.diagnostics->errors().size();
    const ir::Graph &method = *root.findGraph(bucket.entry);
    std::string name = entryName(stage.kind, bucket.entry);
    std::replace(name.begin(), name.end(), '.', '_');
    auto graph = stage.pipeline.specialize(method, fmt::format("{}_{}", name, index),
                                           typesOf(method, bucket), context);
    if (graph.isOk()) {
      graphs.push_back(*std::move(graph));
      continue;
    }
    if (graph.status().code() != Code::Unsupported)
      return graph.status().withContext("cannot compile " + description);
    failedEntry = bucket.entry;
    const std::string errors = context.diagnostics->render(known);
    failures += fmt::format("cannot compile {}{}", description,
                            errors.empty() ? ", either: for what is said above\n" : ":\n" + errors);
    if (!errors.empty() && llvm::all_of(context.diagnostics->errors().drop_front(known), isOfTypes))
      failures += fmt::format("  to do: {} may not be what the model takes; compare number of "
                              "dimensions, sizes and dtype with the example of its export "
                              "(its own dtype, whatever the plan's precision)\n",
                              describeInputs(bucket));
  }
  if (!failures.empty())
    return Status(Code::Unsupported, failures);
  return graphs;
}

/// The graph of the entry `update`, which no method has. The graphs of the micro-batches have added
/// its states to `root`.
Result<std::vector<std::unique_ptr<ir::Graph>>> makeUpdate(ir::Module &root, const Stage &stage,
                                                           const passes::PassContext &context) {
  std::vector<std::unique_ptr<ir::Graph>> graphs;
  ir::Graph &graph = *graphs.emplace_back(std::make_unique<ir::Graph>(kUpdateEntry));
  graph.setOwner(&root);
  graph.createOutput({}, ir::Loc::unknown());
  CGC_TRY(withDiagnostics(stage.pipeline.run(graph, context), *context.diagnostics));
  return graphs;
}

/// What inference and training differ in.
struct Recipe {
  std::vector<std::string> methods = {};    ///< The methods to compile, as for chooseBuckets().
  std::vector<PipelineKind> stages = {};    ///< The first one also prepares the module.
  passes::PipelineSettings settings = {};   ///< Of all stages, but for the kind.
  std::optional<TrainingStep> step = {};    ///< PlanData::training.
  std::optional<passes::PassList> own = {}; ///< The passes of the only stage, if not the default.
};

Result<Recipe> recipeOfInference(const CompileOptions &options) {
  Recipe recipe{.methods = options.entries, .stages = {PipelineKind::Inference}};
  for (const EntryGroup &group : options.entryGroups)
    recipe.methods.push_back(group.name);
  if (const auto *text = std::get_if<std::string>(&options.passes)) {
    CGC_ASSIGN_OR_RETURN(recipe.own, passes::parsePassList(*text));
    return recipe;
  }
  const auto &[level, precision, hostModules] = std::get<DefaultPasses>(options.passes);
  recipe.settings = {
      .target = options.target, .level = level, .precision = precision, .hostModules = hostModules};
  return recipe;
}

Result<Recipe> recipeOfTraining(const CompileOptions &options, const TrainOptions &train) {
  if (!options.entries.empty() || !options.entryGroups.empty())
    return Status(Code::Usage, "a training plan has the entries step and evaluate of one method: "
                               "leave other entries and entry groups out");
  const auto *passes = std::get_if<DefaultPasses>(&options.passes);
  if (!passes)
    return Status(Code::Usage, "a training plan is compiled by its own passes: leave the list of "
                               "passes out");
  if (train.accumulates && train.microBatches)
    return Status(Code::Usage,
                  "accumulation is over batches with losses of their own, and micro-batches "
                  "have one loss: leave one of the two out");
  const bool isDataParallel = train.isDataParallel || train.ranks;
  if (isDataParallel && options.target != DeviceKind::Cuda)
    return Status(Code::Usage, "several ranks train on GPUs: compile for target cuda");
  if (train.accumulates && train.ranks)
    return Status(Code::Usage, "accumulation is over batches with losses of their own, and these "
                               "ranks have one loss: leave one of the two out");
  if (train.synchronizesBatchNorm && (!train.isDataParallel || train.ranks))
    return Status(Code::Usage,
                  "batch norm is synchronized between ranks with batches of their own: "
                  "compile for these, or leave batch norm as it is");
  if (train.shardsOptimizer && !isDataParallel)
    return Status(Code::Usage, "an optimizer is divided among ranks: compile for several ranks, or "
                               "leave it whole");
  Recipe recipe{.methods = {train.method}, .stages = {PipelineKind::Step, PipelineKind::Evaluate}};
  if (train.accumulates)
    recipe.stages = {PipelineKind::Step, PipelineKind::FirstGradient, PipelineKind::NextGradient,
                     PipelineKind::Evaluate, PipelineKind::Update};
  recipe.settings = {.target = options.target,
                     .level = passes->level,
                     .autocast = train.autocast,
                     .loss = train.loss,
                     .optimizer = train.optimizer,
                     .recompute = train.recompute,
                     .microBatches = train.microBatches,
                     .isDataParallel = isDataParallel,
                     .ranks = train.ranks,
                     .synchronizesBatchNorm = train.synchronizesBatchNorm,
                     .shardsOptimizer = train.shardsOptimizer};
  recipe.step = TrainingStep{.method = train.method,
                             .loss = static_cast<uint32_t>(train.loss),
                             .autocast = train.autocast,
                             .optimizer = train.optimizer};
  return recipe;
}

/// Usage if the options contradict each other.
Result<Recipe> recipeOf(const CompileOptions &options) {
  if (options.tf32 && options.target != DeviceKind::Cuda)
    return Status(Code::Usage, "tf32 is for target cuda: on a cpu nothing rounds to tf32");
  return options.train ? recipeOfTraining(options, *options.train) : recipeOfInference(options);
}

/// The stages of a recipe. Their pipelines share an instrumentation. Fails as check() does.
Result<std::vector<Stage>> makeStages(const CompileOptions &options, const Recipe &recipe) {
  passes::InstrumentationOptions asked = options.instrumentation;
  asked.origin.target = options.target;
  CGC_ASSIGN_OR_RETURN(
      const passes::Instrumentation instrumentation,
      passes::makeInstrumentation(asked, *options.log, options.extensions.registeredPasses()));
  std::vector<Stage> stages;
  for (const PipelineKind kind : recipe.stages) {
    passes::PipelineSettings settings = recipe.settings;
    settings.kind = kind;
    passes::PipelineBuilder builder = options.extensions;
    CGC_ASSIGN_OR_RETURN(
        passes::Pipeline pipeline,
        builder.setPasses(recipe.own ? *recipe.own : passes::defaultPasses(settings))
            .setInstrumentation(instrumentation)
            .build());
    stages.push_back({kind, std::move(pipeline),
                      /*branches=*/kind != PipelineKind::Step || !settings.microBatches});
  }
  if (llvm::none_of(stages,
                    [](const Stage &stage) { return stage.pipeline.checkExplained().isOk(); }))
    return stages.front().pipeline.checkExplained();
  return stages;
}

/// The dtype that the pipeline's pass `precision` converts floats to. None if the pipeline has no
/// such pass.
std::optional<DType> precisionOf(const passes::Pipeline &pipeline) {
  const auto precision = pipeline.passes().option("precision", "to");
  return precision ? parseDType(*precision) : std::nullopt;
}

} // namespace

Status check(const CompileOptions &options) {
  CGC_ASSIGN_OR_RETURN(const Recipe recipe, recipeOf(options));
  return makeStages(options, recipe).status();
}

Result<backend::CompiledPlan> compile(ir::Module &root, const CompileOptions &options,
                                      ir::Diagnostics &diagnostics) {
  CGC_ASSIGN_OR_RETURN(const Recipe recipe, recipeOf(options));
  CGC_ASSIGN_OR_RETURN(const std::vector<Stage> stages, makeStages(options, recipe));
  const passes::Pipeline &pipeline = stages.front().pipeline;
  CGC_TRY(addEntryGroups(root, options.entryGroups));
  CGC_ASSIGN_OR_RETURN(const auto buckets,
                       chooseBuckets(root, options.inputs, options.batches, recipe.methods));
  CGC_TRY(checkShapes(buckets, options.shapes));
  const auto isOfBuckets = [](const Stage &stage) { return stage.kind != PipelineKind::Update; };
  const Phases phases{options, llvm::count_if(stages, isOfBuckets) * buckets.size() + 2};
  RuntimeEvaluator evaluator(options.target, options.libraryFolder);
  const passes::PassContext context{.target = options.target,
                                    .evaluator = &evaluator,
                                    .hostTypes = options.hostTypes ? &options.hostTypes : nullptr,
                                    .diagnostics = &diagnostics};
  const auto finish =
      llvm::make_scope_exit([&] { pipeline.finish(); }); // Runs after a failure, too.
  phases.begin("prepare");
  CGC_TRY(withDiagnostics(pipeline.prepare(root, context), diagnostics));
  std::vector<std::unique_ptr<ir::Graph>> graphs; // Those of the first stage are first.
  std::vector<backend::EntryBucket> entryBuckets;
  for (const Stage &stage : stages) {
    CGC_ASSIGN_OR_RETURN(auto made, isOfBuckets(stage)
                                        ? specializeAll(root, buckets, !options.batches.empty(),
                                                        stage, context, phases)
                                        : makeUpdate(root, stage, context));
    for (size_t i = 0; i < made.size(); ++i) {
      if (stage.kind == PipelineKind::Evaluate)
        made[i]->setOutputNames(passes::trainingOutputNames(*made[i]));
      entryBuckets.push_back(
          {entryName(stage.kind, buckets[i].entry), made[i].get(), stage.branches});
      graphs.push_back(std::move(made[i]));
    }
  }
  const PipelineKind first = stages.front().kind;
  if (first == PipelineKind::Step && options.onNote)
    for (const std::string &note :
         passes::trainingNotes(*root.findGraph(buckets.front().entry), *graphs.front()))
      options.onNote(note);
  if (auto refresh = passes::refreshCopies(root, options.target)) {
    entryBuckets.push_back({kRefreshEntry, refresh.get()});
    graphs.push_back(std::move(refresh));
  }

  phases.begin("lower");
  backend::LowerOptions lowerOptions(options.target, options.arch);
  lowerOptions.opLibraries = options.opLibraries;
  lowerOptions.tf32 = options.tf32;
  lowerOptions.reusesMemory = options.reusesMemory;
  auto compiled = backend::lower(entryBuckets, lowerOptions, diagnostics);
  if (!compiled.isOk())
    return withDiagnostics(compiled.status(), diagnostics);
  compiled->plan.precision = precisionOf(pipeline);
  compiled->plan.tf32 = options.tf32;
  compiled->plan.training = recipe.step;
  if (first == PipelineKind::Inference)
    findBatchRows(root, buckets, compiled->plan);
  return compiled;
}

Status withDiagnostics(Status status, const ir::Diagnostics &diagnostics) {
  if (status.isOk() || !diagnostics.hasErrors())
    return status;
  return diagnostics.toStatus(status.code());
}

} // namespace cgc::driver
