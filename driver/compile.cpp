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
  return error.cause == ir::Cause::None && op && *op != ir::OpKind::HostCall &&
         (ir::opDef(*op).infer || *op == ir::OpKind::Size);
}

/// An entry of the plan for each bucket of a method, and the passes that make it.
struct Stage {
  std::string entry; ///< Empty: that of the bucket.
  passes::Pipeline pipeline;
  /// EntryBucket::branches. Micro-batches that ran at the same time would each need memory.
  bool branches = true;
};

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
    std::string name = stage.entry.empty() ? bucket.entry : stage.entry;
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

/// The passes of an entry of a training plan.
passes::PassList trainingPasses(const CompileOptions &options, passes::PipelineKind entry) {
  const TrainOptions &train = *options.train;
  return passes::defaultPasses({.kind = entry,
                                .target = options.target,
                                .level = std::get<DefaultPasses>(options.passes).level,
                                .autocast = train.autocast,
                                .loss = train.loss,
                                .optimizer = train.optimizer,
                                .recompute = train.recompute,
                                .microBatches = train.microBatches});
}

Result<passes::PassList> passesOf(const CompileOptions &options) {
  if (options.train)
    return trainingPasses(options, passes::PipelineKind::Step);
  if (const auto *text = std::get_if<std::string>(&options.passes))
    return passes::parsePassList(*text);
  const auto &[level, precision, hostModules] = std::get<DefaultPasses>(options.passes);
  return passes::defaultPasses({.target = options.target,
                                .level = level,
                                .precision = precision,
                                .hostModules = hostModules});
}

/// The names of methods for chooseBuckets, those of the groups included.
std::vector<std::string> entriesToCompile(const CompileOptions &options) {
  std::vector<std::string> entries = options.entries;
  if (options.train)
    entries.push_back(options.train->method);
  for (const EntryGroup &group : options.entryGroups)
    entries.push_back(group.name);
  return entries;
}

/// The pipelines of a compilation. They share their instrumentation.
class PipelineFactory {
public:
  static Result<PipelineFactory> create(const CompileOptions &options) {
    passes::InstrumentationOptions asked = options.instrumentation;
    asked.origin.target = options.target;
    CGC_ASSIGN_OR_RETURN(
        passes::Instrumentation instrumentation,
        passes::makeInstrumentation(asked, *options.log, options.extensions.registeredPasses()));
    return PipelineFactory(options, std::move(instrumentation));
  }
  Result<passes::Pipeline> make(passes::PassList passes) const {
    passes::PipelineBuilder builder = extensions_;
    return builder.setPasses(std::move(passes)).setInstrumentation(instrumentation_).build();
  }

private:
  PipelineFactory(const CompileOptions &options, passes::Instrumentation instrumentation)
      : extensions_(options.extensions), instrumentation_(std::move(instrumentation)) {}

  passes::PipelineBuilder extensions_;
  passes::Instrumentation instrumentation_;
};

Status checkOptions(const CompileOptions &options) {
  if (options.tf32 && options.target != DeviceKind::Cuda)
    return Status(Code::Usage, "tf32 is for target cuda: on a cpu nothing rounds to tf32");
  if (options.train && (!options.entries.empty() || !options.entryGroups.empty()))
    return Status(Code::Usage, "a training plan has the entries step and evaluate of one method: "
                               "leave other entries and entry groups out");
  if (options.train && std::holds_alternative<std::string>(options.passes))
    return Status(Code::Usage, "a training plan is compiled by its own passes: leave the list of "
                               "passes out");
  if (options.train && options.train->accumulates && options.train->microBatches)
    return Status(Code::Usage,
                  "accumulation is over batches with losses of their own, and micro-batches "
                  "have one loss: leave one of the two out");
  return Status::ok();
}

/// What becomes of each bucket of a method. The pipeline of the first stage also prepares the
/// module. Fails as check() does.
Result<std::vector<Stage>> makeStages(const CompileOptions &options,
                                      const PipelineFactory &pipelines) {
  CGC_ASSIGN_OR_RETURN(passes::PassList firstPasses, passesOf(options));
  CGC_ASSIGN_OR_RETURN(passes::Pipeline first, pipelines.make(std::move(firstPasses)));
  const Status explains = first.checkExplained();
  std::vector<Stage> stages;
  stages.push_back({options.train ? kStepEntry : "", std::move(first),
                    !options.train || !options.train->microBatches});
  std::vector<std::pair<const char *, passes::PipelineKind>> more;
  if (options.train) {
    if (options.train->accumulates)
      more = {{kFirstGradientEntry, passes::PipelineKind::FirstGradient},
              {kNextGradientEntry, passes::PipelineKind::NextGradient}};
    more.emplace_back(kEvaluateEntry, passes::PipelineKind::Evaluate);
  }
  for (const auto &[entry, kind] : more) {
    CGC_ASSIGN_OR_RETURN(passes::Pipeline pipeline, pipelines.make(trainingPasses(options, kind)));
    stages.push_back({entry, std::move(pipeline)});
  }
  if (llvm::none_of(stages,
                    [](const Stage &stage) { return stage.pipeline.checkExplained().isOk(); }))
    return explains;
  return stages;
}

/// The graph of the entry `update`, which no method has. The graphs of the micro-batches have added
/// its states to `root`.
Result<std::unique_ptr<ir::Graph>> makeUpdate(ir::Module &root, const PipelineFactory &pipelines,
                                              const CompileOptions &options,
                                              const passes::PassContext &context) {
  CGC_ASSIGN_OR_RETURN(const passes::Pipeline pipeline,
                       pipelines.make(trainingPasses(options, passes::PipelineKind::Update)));
  auto graph = std::make_unique<ir::Graph>(kUpdateEntry);
  graph->setOwner(&root);
  graph->createOutput({}, ir::Loc::unknown());
  CGC_TRY(pipeline.run(*graph, context));
  return graph;
}

/// The dtype that the pipeline's pass `precision` converts floats to. None if the pipeline has no
/// such pass.
std::optional<DType> precisionOf(const passes::Pipeline &pipeline) {
  const auto precision = pipeline.passes().option("precision", "to");
  return precision ? parseDType(*precision) : std::nullopt;
}

} // namespace

Status check(const CompileOptions &options) {
  CGC_TRY(checkOptions(options));
  CGC_ASSIGN_OR_RETURN(const PipelineFactory pipelines, PipelineFactory::create(options));
  return makeStages(options, pipelines).status();
}

Result<backend::CompiledPlan> compile(ir::Module &root, const CompileOptions &options,
                                      ir::Diagnostics &diagnostics) {
  CGC_TRY(checkOptions(options));
  CGC_ASSIGN_OR_RETURN(const PipelineFactory pipelines, PipelineFactory::create(options));
  CGC_ASSIGN_OR_RETURN(const std::vector<Stage> stages, makeStages(options, pipelines));
  const passes::Pipeline &pipeline = stages.front().pipeline;
  CGC_TRY(addEntryGroups(root, options.entryGroups));
  CGC_ASSIGN_OR_RETURN(const auto buckets, chooseBuckets(root, options.inputs, options.batches,
                                                         entriesToCompile(options)));
  const Phases phases{options, stages.size() * buckets.size() + 2};
  RuntimeEvaluator evaluator(options.providerPath);
  const passes::PassContext context{.target = options.target,
                                    .evaluator = &evaluator,
                                    .hostTypes = options.hostTypes ? &options.hostTypes : nullptr,
                                    .diagnostics = &diagnostics};
  const auto finish =
      llvm::make_scope_exit([&] { pipeline.finish(); }); // Runs after a failure, too.
  phases.begin("prepare");
  CGC_TRY(withDiagnostics(pipeline.prepare(root, context), diagnostics));
  std::vector<std::unique_ptr<ir::Graph>> graphs; // Of each stage, one for each bucket.
  std::vector<backend::EntryBucket> entryBuckets;
  for (const Stage &stage : stages) {
    CGC_ASSIGN_OR_RETURN(auto specialized, specializeAll(root, buckets, !options.batches.empty(),
                                                         stage, context, phases));
    for (size_t i = 0; i < buckets.size(); ++i) {
      if (options.train && stage.entry == kEvaluateEntry)
        specialized[i]->setOutputNames(passes::trainingOutputNames(*specialized[i]));
      entryBuckets.push_back({stage.entry.empty() ? buckets[i].entry : stage.entry,
                              specialized[i].get(), stage.branches});
      graphs.push_back(std::move(specialized[i]));
    }
  }
  if (options.train && options.onNote)
    for (const std::string &note :
         passes::trainingNotes(*root.findGraph(buckets.front().entry), *graphs.front()))
      options.onNote(note);
  if (options.train && options.train->accumulates) {
    auto update = makeUpdate(root, pipelines, options, context);
    if (!update.isOk())
      return withDiagnostics(update.status(), diagnostics);
    entryBuckets.push_back({kUpdateEntry, update->get()});
    graphs.push_back(*std::move(update));
  }

  if (options.train)
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
  if (!options.train)
    findBatchRows(root, buckets, compiled->plan);
  return compiled;
}

Status withDiagnostics(Status status, const ir::Diagnostics &diagnostics) {
  if (status.isOk() || !diagnostics.hasErrors())
    return status;
  return diagnostics.toStatus(status.code());
}

} // namespace cgc::driver
