// cgc compile: compiles a model into a plan file.
#include "driver/compile.h"
#include "driver/add_buckets.h"
#include "driver/batch_curve.h"
#include "passes/pipeline.h"
#include "runtime/base/collectives.h"
#include "runtime/base/file.h"
#include "runtime/plan/plan_file.h"
#include "tools/cgc/cli/console.h"
#include "tools/cgc/cli/file_arguments.h"
#include "tools/cgc/cli/host_modules.h"
#include "tools/cgc/cli/libraries.h"
#include "tools/cgc/cli/list_option.h"
#include "tools/cgc/cli/pass_flags.h"
#include "tools/cgc/cli/pass_plugins.h"
#include "tools/cgc/cli/progress.h"
#include "tools/cgc/cli/specs.h"
#include "tools/cgc/io/file_lock.h"
#include "tools/cgc/io/model_file.h"
#include "tools/cgc/report/offender_report.h"
#include "tools/cgc/report/plan_summary.h"
#include "tools/cgc/train/optimizer_flags.h"
#include "tools/cgc/verbs/tune.h"
#include "tools/cgc/verbs/verbs.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>

namespace cgc::tool {

namespace {

/// The step has a copy of the towers for each.
constexpr uint64_t kMaxMicroBatches = 1024;

/// What --batch auto takes without --max-batch and --waste.
constexpr int64_t kLargestAutoBatch = 64;
constexpr double kAutoWaste = 0.1;

struct CompileFlags {
  std::vector<std::string> models;
  std::string output, addTo, target = "cuda", precision = "keep";
  std::optional<std::string> arch;   ///< None: the first of backend::kGpuModels.
  std::optional<std::string> passes; ///< None: the default ones.
  int level = 1;                     ///< The value of -O.
  std::vector<std::string> inputs, entries, entryGroups, hostModules, passPlugins, opLibraries;
  std::vector<int64_t> batches; ///< Or kAutoBatch alone.
  std::optional<int64_t> maxBatch;
  std::optional<double> waste;
  std::optional<std::string> train; ///< The method whose step is compiled.
  OptimizerFlags optimizer;
  std::string autocast, recompute = "none";
  size_t loss = 0;
  std::optional<uint64_t> gradCache; ///< Micro-batches; none: the batch is not split.
  std::optional<uint64_t> ranks;     ///< That share a batch; none: each has its own.
  bool keepGradients = false, accumulate = false, dataParallel = false, syncBatchNorm = false,
       shardOptimizer = false;
  bool noReuse = false, tune = false, requireNative = false, json = false;
  passes::InstrumentationOptions instrumentation;
};

/// Unsupported, listing the records, if LibTorch runs any.
Status checkNative(const PlanData &plan) {
  const std::string records = libTorchText(plan);
  if (records.empty())
    return Status::ok();
  return Status(
      Code::Unsupported,
      fmt::format("--require-native: the plan needs LibTorch at run time, for\n{}  to do: "
                  "{}, or leave --require-native out and deploy LibTorch with the plan",
                  records,
                  plan.target == DeviceKind::Cpu
                      ? "compile with --target cuda, as a cpu plan computes with LibTorch"
                      : "write these parts with ops that have a kernel, or as ops of an "
                        "op library"));
}

/// Tunes the plan that was just compiled, before it is written.
Status tuneInMemory(backend::CompiledPlan &compiled, const std::vector<std::string> &opLibraries,
                    Progress &progress) {
  std::vector<std::vector<std::byte>> weights;
  for (const auto &weight : compiled.weights)
    weights.emplace_back(weight->bytes().begin(), weight->bytes().end());
  CGC_ASSIGN_OR_RETURN(const Plan plan, Plan::fromMemory(compiled.plan, std::move(weights)));
  CGC_ASSIGN_OR_RETURN(tuner::Tuned tuned, tunePlan(plan, opLibraries, progress));
  compiled.plan = std::move(tuned.plan);
  return Status::ok();
}

/// Writes the compiled plan, or `addTo`, if there is one, with its buckets. Returns what was
/// written.
Result<PlanData> write(backend::CompiledPlan compiled, const std::optional<Plan> &addTo,
                       const CompileFlags &options) {
  if (!addTo) {
    std::vector<std::span<const std::byte>> weights;
    for (const auto &weight : compiled.weights)
      weights.emplace_back(weight->bytes().data(), weight->bytes().size());
    CGC_TRY(writePlan(compiled.plan, weights, options.output));
    return std::move(compiled.plan);
  }
  auto extended = driver::addBuckets(*addTo, compiled);
  if (!extended.isOk())
    return extended.status().withContext("cannot add to " + options.addTo);
  CGC_TRY(writePlan(extended->plan, extended->weights, options.output));
  return std::move(extended->plan);
}

/// Warns if the plan does not fit into the memory of the GPU model that it was compiled for. The
/// plan is written nevertheless: another GPU may have more memory.
void warnOfMemory(const PlanData &plan, backend::Arch arch) {
  if (plan.target != DeviceKind::Cuda)
    return;
  const backend::GpuModel &gpu = backend::gpuModel(arch);
  const uint64_t weights = weightBytes(plan), arena = arenaBytes(plan), memory = gpu.memoryBytes;
  if (arena > memory || weights > memory - arena)
    logWarning(fmt::format("the arena takes {} and the weights {}, more than the {} of an {}; "
                           "compile for a smaller --batch or smaller --input",
                           formatBytes(arena), formatBytes(weights), formatBytes(memory),
                           gpu.name));
}

/// Says what branches that run at the same time cost in memory.
void noteBranches(const backend::CompiledPlan &compiled) {
  for (const backend::BranchedBucket &branched : compiled.branched)
    logInfo(fmt::format("entry '{}', bucket {}: {} branches run at the same time; the arena takes "
                        "{}, and {} if they ran one after another",
                        branched.entry, branched.bucket, branched.branches,
                        formatBytes(branched.arenaBytes), formatBytes(branched.serialArenaBytes)));
}

std::vector<std::string> archNames() {
  std::vector<std::string> names;
  for (const backend::GpuModel &gpu : backend::kGpuModels)
    names.emplace_back(gpu.archName);
  return names;
}

Result<driver::CompileOptions> compileOptionsOf(const CompileFlags &options) {
  driver::CompileOptions result;
  CGC_ASSIGN_OR_RETURN(auto plugins, loadPassPlugins(options.passPlugins, result.extensions));
  result.instrumentation = withOrigin(options.instrumentation, std::move(plugins));
  CGC_ASSIGN_OR_RETURN(result.inputs, parseInputSpecs(options.inputs));
  CGC_ASSIGN_OR_RETURN(result.opLibraries, openOpLibraries(options.opLibraries));
  result.batches = options.batches;
  result.entries = options.entries;
  CGC_ASSIGN_OR_RETURN(result.entryGroups, parseEntryGroups(options.entryGroups));
  result.target = *parseDevice(options.target);
  for (const backend::GpuModel &gpu : backend::kGpuModels)
    if (gpu.archName == options.arch)
      result.arch = gpu.arch;
  if (options.train) {
    CGC_ASSIGN_OR_RETURN(OptimizerOptions optimizer, parseOptimizer(options.optimizer));
    optimizer.keepsGradients = options.keepGradients;
    result.train = driver::TrainOptions{*options.train,
                                        options.loss,
                                        std::move(optimizer),
                                        options.autocast.empty() ? std::nullopt
                                                                 : precisionOf(options.autocast),
                                        options.recompute == "none" ? "" : options.recompute,
                                        options.accumulate,
                                        options.gradCache,
                                        options.dataParallel,
                                        options.ranks,
                                        options.syncBatchNorm,
                                        options.shardOptimizer};
  }
  result.tf32 = options.precision == "tf32";
  result.reusesMemory = !options.noReuse;
  if (options.passes)
    result.passes = *options.passes;
  else
    result.passes = driver::DefaultPasses{static_cast<passes::OptLevel>(options.level),
                                          precisionOf(options.precision), options.hostModules};
  result.libraryFolder = libraryFolder();
  return result;
}

/// Sets what the model's own shapes decide. Usage if an option does not fit the kind of the file.
Status fitToModel(driver::CompileOptions &compileOptions, const ModelFile &model,
                  const CompileFlags &options) {
  if (model.shapes.empty())
    return Status::ok();
  if (!options.hostModules.empty())
    return Status(Code::Usage, "--host-module needs a TorchScript file, whose modules LibTorch "
                               "runs; leave it out, or export the model with torch.jit.trace");
  CGC_ASSIGN_OR_RETURN(compileOptions.inputs,
                       withExamples(std::move(compileOptions.inputs), model.shapes));
  compileOptions.shapes = model.shapes;
  return Status::ok();
}

Result<ModelFile> importModelsOf(const CompileFlags &options) {
  return importModel(
      options.models,
      options.train ? frontend::ImportFor::Training : frontend::ImportFor::Inference,
      options.train.value_or(options.entries.size() == 1 ? options.entries.front() : "forward"));
}

bool isAutoBatch(const CompileFlags &options) {
  return options.batches == std::vector{kAutoBatch};
}

/// Usage if options for --batch auto do not fit others.
Status checkAutoBatch(const CompileFlags &options) {
  const bool isAuto = isAutoBatch(options);
  if (!isAuto && (options.maxBatch || options.waste))
    return Status(Code::Usage, fmt::format("{} is for --batch auto; give that, or leave it out",
                                           options.maxBatch ? "--max-batch" : "--waste"));
  if (isAuto && options.target != "cuda")
    return Status(Code::Usage, "--batch auto needs expected times, which there are for --target "
                               "cuda; list the batches");
  if (isAuto && options.train)
    return Status(Code::Usage, "--batch auto is for inference, as a training step is never padded; "
                               "list the batches");
  return Status::ok();
}

/// The batches that `--batch auto` stands for: those of the times that `compileOptions` gives with
/// a module of its own.
Result<std::vector<int64_t>> chooseBatches(const CompileFlags &options,
                                           driver::CompileOptions compileOptions,
                                           ir::Diagnostics &diagnostics, Progress &progress) {
  const int64_t most = options.maxBatch.value_or(kLargestAutoBatch);
  const double waste = options.waste.value_or(kAutoWaste);
  compileOptions.batches = driver::sampledBatches(most);
  progress.begin(fmt::format("compute times for {} rows", fmt::join(compileOptions.batches, ", ")));
  CGC_ASSIGN_OR_RETURN(const ModelFile model, importModelsOf(options));
  compileOptions.instrumentation = {};
  const auto compiled = driver::compile(*model.root, compileOptions, diagnostics);
  if (!compiled.isOk())
    return withOptionsToChange(compiled.status(), "--input, --max-batch, --entry or --entry-group");
  std::vector<driver::BatchCurve> curves;
  for (const Entry &entry : compiled->plan.entries) {
    driver::BatchCurve &curve = curves.emplace_back();
    curve.batches = compileOptions.batches;
    for (const Bucket &bucket : entry.buckets)
      curve.micros.push_back(bucket.expectedMicros);
  }
  std::vector<int64_t> chosen = driver::chooseBatches(curves, most, waste);
  logInfo(
      fmt::format("--batch auto chooses {}: padding costs at most {:.0f} % of the expected time "
                  "of any batch up to {}",
                  fmt::join(chosen, ","), waste * 100, most));
  return chosen;
}

/// Compiles and writes the plan. Problems of the model are also added to `diagnostics`.
Status compile(CompileFlags options, ir::Diagnostics &diagnostics) {
  if (options.output.empty())
    options.output = options.addTo;
  if (options.output.empty())
    return {Code::Usage, "--output is required; see cgc compile --help"};
  if (options.tune && options.target != "cuda")
    return Status(Code::Usage, "--tune is for --target cuda: there is nothing to tune on a cpu");
  if (options.arch && options.target != "cuda")
    return Status(Code::Usage, fmt::format("--arch {} is for --target cuda: a plan for --target {} "
                                           "runs on no GPU; leave --arch out",
                                           *options.arch, options.target));
  if (options.train) {
    CGC_ASSIGN_OR_RETURN(const OptimizerOptions optimizer, parseOptimizer(options.optimizer));
    if (options.optimizer.optimizer.empty())
      logInfo(
          fmt::format("--optimizer is not given: the step is that of SGD with a learning rate of "
                      "{} and without momentum",
                      optimizer.lr));
  }
  if (options.train && options.precision != "keep" && options.precision != "tf32")
    return Status(Code::Usage, "--precision " + options.precision +
                                   " converts a model for inference; for a training step give "
                                   "--autocast");
  if (options.precision == "tf32" && options.target != "cuda")
    return Status(Code::Usage, "--precision tf32 is for --target cuda: on a cpu nothing rounds to "
                               "tf32; use fp32");
  if (options.tune && !options.hostModules.empty())
    return Status(Code::Usage,
                  "--tune times buckets that are one graph, and host calls split them; "
                  "leave --tune or --host-module out");
  for (const std::string &glob : options.hostModules)
    if (glob.find_first_of(",{}= ") != std::string::npos)
      return Status(Code::Usage, fmt::format("--host-module '{}' is not the path of a module, such "
                                             "as visual.adapter, or a glob",
                                             glob));
  CGC_TRY(checkAutoBatch(options));
  if (options.tune)
    CGC_TRY(tuner::checkMachine());
  for (const std::string &model : options.models)
    CGC_TRY(MappedFile::open(model).status());
  if (options.inputs.empty() && options.models.size() == 1 && !isExported(options.models[0]))
    return Status(Code::Usage, "--input is required, unless the model is a .pt2 file, which says "
                               "the types of its inputs; give NAME=DTYPE[SIZES] for each");
  CGC_TRY(FileArguments()
              .reads(options.models)
              .reads(options.passPlugins)
              .reads(options.opLibraries)
              .reads(options.addTo)
              .writes("-o", options.output, /*replaced=*/options.addTo)
              .writes("--crash-reproducer", options.instrumentation.crashReproducer)
              .dumpsTo(options.instrumentation.dumpDir)
              .check());
  CGC_ASSIGN_OR_RETURN(driver::CompileOptions compileOptions, compileOptionsOf(options));
  CGC_TRY(driver::check(compileOptions));
  std::optional<FileLock> lock;
  std::error_code isNoFile;
  if (std::filesystem::equivalent(options.output, options.addTo, isNoFile)) {
    CGC_ASSIGN_OR_RETURN(FileLock taken, FileLock::take(options.addTo));
    lock.emplace(std::move(taken));
  }
  std::optional<Plan> addTo;
  if (!options.addTo.empty()) {
    CGC_ASSIGN_OR_RETURN(addTo, Plan::load(options.addTo));
  }

  PlanData plan;
  {
    Progress progress; // The number of phases is known once the model is loaded.
    progress.begin(fmt::format("load {}", fmt::join(options.models, ", ")));
    CGC_ASSIGN_OR_RETURN(const ModelFile model, importModelsOf(options));
    CGC_TRY(fitToModel(compileOptions, model, options));
    if (!options.hostModules.empty()) {
      CGC_ASSIGN_OR_RETURN(compileOptions.hostTypes, hostTypesOf(options.models.front()));
    }
    if (isAutoBatch(options)) {
      CGC_ASSIGN_OR_RETURN(compileOptions.batches,
                           chooseBatches(options, compileOptions, diagnostics, progress));
    }
    bool begun = false, inPasses = false;
    compileOptions.onPhase = [&](const std::string &phase, size_t phases) {
      begun = true;
      inPasses = phase != "lower";
      progress.expect(phases + (options.tune ? 3 : 2)); // Adds load, write and, if asked for, tune.
      progress.begin(phase);
    };
    compileOptions.onNote = [](const std::string &note) { logInfo(note); };
    auto compiled = driver::compile(*model.root, compileOptions, diagnostics);
    if (!begun) // Inputs, batch sizes or entries do not fit the model.
      return withOptionsToChange(compiled.status(), "--input, --batch, --entry or --entry-group");
    if (!compiled.isOk())
      return inPasses ? withReproducer(compiled.status(), options.instrumentation)
                      : compiled.status();
    if (options.requireNative)
      CGC_TRY(checkNative(compiled->plan));
    noteBranches(*compiled);
    if (options.tune)
      CGC_TRY(tuneInMemory(*compiled, options.opLibraries, progress));
    if (lock)
      CGC_TRY(lock->check());
    progress.begin("write " + options.output);
    CGC_ASSIGN_OR_RETURN(plan, write(*std::move(compiled), addTo, options));
  }
  noteUnusedOpLibraries(plan, options.opLibraries);
  warnOfMemory(plan, compileOptions.arch);
  if (isStandardOutput(options.output)) // Text after the plan would corrupt it.
    return Status::ok();
  std::error_code noSize; // A pipe or a device has no size.
  const uint64_t size = std::filesystem::file_size(options.output, noSize);
  const uint64_t fileBytes = noSize ? 0 : size;
  if (options.json)
    return printJson("compile", planJson(plan, options.output, fileBytes));
  return printOut(planText(plan, options.output, fileBytes));
}

void addTrainOptions(CLI::App &command, CompileFlags &options) {
  constexpr const char *kGroup = "Training";
  CLI::Option *const train =
      command
          .add_option("--train", options.train,
                      "Compile the training step of this method, which returns the loss: entries "
                      "step and evaluate, for cgc train")
          ->type_name("METHOD")
          ->excludes("--entry")
          ->excludes("--entry-group")
          ->excludes("--passes")
          ->excludes("--host-module")
          ->excludes("--add-to")
          ->group(kGroup);
  const auto add = [&](const char *name, auto &value, const char *text, const char *type) {
    return command.add_option(name, value, text)->type_name(type)->needs(train)->group(kGroup);
  };
  add("--loss", options.loss, "The output that is the loss [0]", "INDEX")
      ->check(CLI::Range(uint64_t(0), uint64_t(1) << 20));
  addOptimizerOptions(command, options.optimizer, train);
  add("--autocast", options.autocast,
      "Compute matrix products in 16 bits; parameters and their updates stay f32, and fp16 has a "
      "dynamic loss scale",
      "bf16|fp16")
      ->check(CLI::IsMember({"bf16", "fp16"}));
  add("--recompute", options.recompute,
      "Compute activations again in the backward pass: none, cheap (pointwise ops and layer norms) "
      "or blocks (all within a block such as resblocks.3)",
      "LEVEL")
      ->check(CLI::IsMember({"none", "cheap", "blocks"}));
  add("--ema", options.optimizer.ema,
      "Keep exponential moving averages of the parameters with this decay, such as 0.999", "DECAY");
  const auto addFlag = [&](const char *name, bool &value, const char *text) {
    return command.add_flag(name, value, text)->needs(train)->group(kGroup);
  };
  addFlag("--keep-gradients", options.keepGradients, "Make the gradients outputs of step");
  addFlag("--accumulate", options.accumulate,
          "Also compile the step in micro-batches, for cgc train --accumulate");
  add("--grad-cache", options.gradCache,
      "Compute the batch in K micro-batches, with the loss over all samples and the activations of "
      "one micro-batch in memory at a time (GradCache)",
      "K")
      ->check(CLI::Range(uint64_t(2), kMaxMicroBatches))
      ->excludes("--accumulate");
  CLI::Option *const dataParallel = addFlag(
      "--data-parallel", options.dataParallel,
      "Average gradients and loss over the ranks that run the plan, each on batches of its own");
  add("--ranks", options.ranks,
      "Share the batch between N ranks, with the loss over all samples as on one rank", "N")
      ->check(CLI::Range(uint64_t(2), uint64_t(kMaxRanks)))
      ->excludes("--accumulate")
      ->excludes(dataParallel);
  addFlag("--sync-batch-norm", options.syncBatchNorm,
          "Take the statistics of batch norm over the batches of all ranks, as SyncBatchNorm")
      ->needs(dataParallel)
      ->excludes("--ranks");
  addFlag("--shard-optimizer", options.shardOptimizer,
          "Divide moments and averages among the ranks, each of which updates its own part of the "
          "parameters (ZeRO-1)");
}

} // namespace

Verb addCompile(CLI::App &app) {
  auto options = std::make_shared<CompileFlags>();
  CLI::App *command = app.add_subcommand("compile", "Compile a model into a plan");
  command
      ->add_option("model", options->models,
                   "A TorchScript file, or .pt2 files of torch.export.save, one for each method")
      ->type_name("MODEL")
      ->required();
  command->add_option("-o,--output", options->output, "The plan to write")
      ->type_name("OUT.cgplan")
      ->check(requireName);
  command
      ->add_option("--add-to", options->addTo,
                   "Add the buckets to this plan of the same model, and write it there or to -o")
      ->type_name("PLAN")
      ->check(requireName);
  command
      ->add_option("--input", options->inputs,
                   "Type of an input; once for each input [.pt2: as it was exported]")
      ->type_name("NAME=DTYPE[SIZES]")
      ->allow_extra_args(false);
  addBatchesOption(*command, "--batch", options->batches,
                   "Compile every entry for each of these values of dimension 0; auto: for the "
                   "fewest batches that --waste allows")
      ->type_name("N,...|auto");
  command
      ->add_option("--max-batch", options->maxBatch,
                   fmt::format("The largest batch of --batch auto [{}]", kLargestAutoBatch))
      ->type_name("N")
      ->check(CLI::Range(int64_t(1), kMaxListedBatch));
  command
      ->add_option("--waste", options->waste,
                   fmt::format("The part of its own expected time that a batch may take longer, "
                               "because it is padded, with --batch auto [{}]",
                               kAutoWaste))
      ->type_name("PART")
      ->check(CLI::Range(0.0, 1000.0));
  addListOption(*command, "--entry", options->entries,
                "Methods to compile [all whose inputs are given, or only the groups]; the name of "
                "the method of a single .pt2 file [forward]")
      ->type_name("NAME,...");
  command
      ->add_option("--entry-group", options->entryGroups,
                   "Compile several methods into one entry, whose branches run at the same time on "
                   "a GPU; once for each group")
      ->type_name("NAME=ENTRY+ENTRY[+...]")
      ->allow_extra_args(false);
  command
      ->add_option("--target", options->target, "Where the plan will run; compiling needs no GPU")
      ->check(CLI::IsMember({"cuda", "cpu"}))
      ->capture_default_str();
  command
      ->add_option("--arch", options->arch,
                   "GPUs that a cuda plan runs on: sm_90a for H100 and H200, sm_80 for all from "
                   "sm_80 on")
      ->check(CLI::IsMember(archNames()))
      ->default_str(archNames().front());
  command
      ->add_option("-O", options->level,
                   "0 keeps the model's own ops; 1 fuses ops that one kernel computes (cuda)")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({0, 1}))
      ->capture_default_str();
  command
      ->add_option("--host-module", options->hostModules,
                   "Leave the calls of these submodules to the program that runs the plan; once "
                   "for each glob")
      ->type_name("GLOB")
      ->allow_extra_args(false)
      ->check(requireName);
  addPrecisionOption(*command, options->precision);
  command
      ->add_option("--passes", options->passes,
                   "Passes to run instead of the default ones, which cgc opt --help lists")
      ->type_name("P,...")
      ->excludes("--precision")
      ->excludes("--host-module");
  addPassPluginOption(*command, options->passPlugins);
  addOpLibraryOption(*command, options->opLibraries);
  command->add_flag("--no-reuse", options->noReuse,
                    "Give every value its own memory, to find memory errors");
  command->add_flag("--tune", options->tune,
                    "Time each GEMM's kernels on this machine's GPU and keep the fastest");
  command->add_flag("--require-native", options->requireNative,
                    "Refuse, with a list, to write a plan that needs LibTorch at run time");
  command->add_flag("--json", options->json, "Print the result as JSON");
  addTrainOptions(*command, *options);
  addPassOptions(*command, options->instrumentation);
  command->footer(
      "--input has the model's own dtypes; with --precision the plan's floating inputs have the "
      "new one.\n\n"
      "Examples:\n"
      "  cgc compile model.pt -o model.cgplan --input 'image=f32[1,3,224,224]' --input "
      "'text=i64[1,77]'\n"
      "  cgc compile model.pt2 -o model.cgplan --batch 1,4\n"
      "  cgc compile model.pt -o image.cgplan --input 'image=f32[1,3,224,224]' --batch 1,4\n"
      "  cgc compile model.pt -o clip.cgplan --input 'image=f32[1,3,224,224]' --input "
      "'text=i64[1,77]' --entry-group clip=encode_image+encode_text\n"
      "  cgc compile model.pt --add-to image.cgplan --input 'image=f32[1,3,224,224]' --batch 16\n"
      "  cgc compile step.pt -o step.cgplan --train forward --input 'x=f32[16,32]' --input "
      "'y=i64[16]' --optimizer adamw,lr=0.001\n"
      "  cgc compile model.pt -o half.cgplan --input 'image=f32[1,3,224,224]' --precision fp16\n"
      "  cgc compile model.pt -o text.cgplan --input 'text=i64[1,77]' --entry encode_text --target "
      "cpu\n"
      "  cgc compile model.pt -o model.cgplan --input 'text=i64[1,77]' --pass-plugin libacme.so "
      "--op-library libacme_ops.so");
  auto diagnostics = std::make_shared<ir::Diagnostics>();
  return {command, [=] { return compile(*options, *diagnostics); },
          [options] { return options->json; },
          [diagnostics] {
            auto fields = nlohmann::ordered_json::object();
            if (diagnostics->hasErrors())
              fields["offenders"] = offendersJson(*diagnostics);
            return fields;
          }};
}

} // namespace cgc::tool
