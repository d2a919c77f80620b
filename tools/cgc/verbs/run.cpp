// cgc run: runs one entry of a plan and writes its outputs.
#include "runtime/base/file.h"
#include "runtime/base/training_names.h"
#include "runtime/train/trainer.h"
#include "tools/cgc/cli/console.h"
#include "tools/cgc/cli/file_arguments.h"
#include "tools/cgc/cli/host_modules.h"
#include "tools/cgc/cli/libraries.h"
#include "tools/cgc/cli/list_option.h"
#include "tools/cgc/cli/progress.h"
#include "tools/cgc/io/file_pattern.h"
#include "tools/cgc/io/inputs.h"
#include "tools/cgc/io/npy.h"
#include "tools/cgc/verbs/runner.h"
#include "tools/cgc/verbs/verbs.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>

namespace cgc::tool {

namespace {

struct RunFlags {
  std::string plan, entry, output, checkpoint, executor = "graph";
  std::vector<std::string> inputs;
  std::optional<int64_t> batch;
  std::vector<std::string> opLibraries;
  std::string hostModules;
  int threads = 0;
  std::optional<int64_t> seed;
  bool noPdl = false, noBranches = false, separateBuffers = false, json = false;
};

/// One run of the entry.
struct Job {
  std::string stem; ///< Replaces `*` in file names; empty if no file name has one.
  std::vector<InputSource> sources;
  std::vector<std::string> outputs; ///< One path per output; empty: nothing is written.
};

/// The result of a job.
struct Outcome {
  size_t bucket = 0;
  std::vector<HostTensor> outputs; ///< Without values, which are already written.
  double milliseconds = 0;
};

/// The path of each output: `path` itself for a single output, y.0.npy, y.1.npy, ... for several. A
/// stream takes all outputs.
std::vector<std::string> outputPaths(const std::string &path, size_t count) {
  if (path.empty())
    return {};
  if (count == 1 || isStream(path))
    return std::vector<std::string>(count, path);
  const std::filesystem::path whole(path);
  std::vector<std::string> paths;
  for (size_t i = 0; i < count; ++i) {
    auto name = whole.stem();
    name += fmt::format(".{}", i);
    name += whole.extension();
    paths.push_back((whole.parent_path() / name).string());
  }
  return paths;
}

/// One job for each stem of the patterns among `sources`, which must all match the same stems; one
/// job if there is no pattern. The jobs' output paths are set later.
Result<std::vector<Job>> makeJobs(const std::vector<InputSource> &sources,
                                  const std::string &output) {
  std::vector<std::string> stems;
  const InputSource *first = nullptr; // The first source that is a pattern.
  for (const InputSource &source : sources) {
    if (!isPattern(source.file))
      continue;
    CGC_ASSIGN_OR_RETURN(auto found, matchPattern(source.file));
    if (!first) {
      first = &source;
      stems = std::move(found);
    } else if (found != stems) {
      std::vector<std::string> odd;
      std::ranges::set_symmetric_difference(stems, found, std::back_inserter(odd));
      return Status(Code::Usage, fmt::format("of '{}' and '{}' one has no file for '{}'; give both "
                                             "inputs for every run",
                                             first->file, source.file, odd[0]));
    }
  }
  if (isPattern(output)) {
    CGC_TRY(checkPattern(output));
    if (!first)
      return Status(Code::Usage,
                    fmt::format("--output {}: * stands for the text of a * in --input, "
                                "and no input has one; give the name of a file",
                                output));
  } else if (first && !output.empty() && !isStream(output)) {
    return Status(Code::Usage, fmt::format("--output {}: there is a run for each file of '{}'; "
                                           "name the outputs likewise, for example --output "
                                           "'out/*.npy'",
                                           output, first->file));
  }
  if (!first)
    return std::vector<Job>{{"", sources, {}}};
  std::vector<Job> jobs;
  for (const std::string &stem : stems) {
    Job job{stem, sources, {}};
    for (InputSource &source : job.sources)
      if (isPattern(source.file))
        source.file = fillPattern(source.file, stem);
    jobs.push_back(std::move(job));
  }
  return jobs;
}

/// Writes all files or, if one cannot be written, none.
Status writeOutputs(const std::vector<HostTensor> &outputs, const std::vector<std::string> &paths) {
  std::vector<AtomicFile> files;
  for (size_t i = 0; i < paths.size(); ++i) {
    CGC_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(paths[i]));
    const std::vector<std::byte> bytes = formatNpy(outputs[i]);
    CGC_TRY(file.write(bytes.data(), bytes.size()));
    files.push_back(std::move(file));
  }
  for (AtomicFile &file : files)
    CGC_TRY(file.commit());
  return Status::ok();
}

nlohmann::ordered_json outputsJson(const Job &job, const Outcome &outcome) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (size_t i = 0; i < outcome.outputs.size(); ++i) {
    const HostTensor &output = outcome.outputs[i];
    list.push_back(
        {{"name", output.name}, {"dtype", dtypeName(output.dtype)}, {"shape", output.sizes}});
    if (!job.outputs.empty())
      list.back()["path"] = job.outputs[i];
  }
  return list;
}

nlohmann::ordered_json jobJson(const Job &job, const Outcome &outcome, const BucketStats &stats,
                               const std::string &executor) {
  const char *const used = executor == "reference" ? "reference"
                           : stats.graphNodes > 0  ? "graph"
                                                   : "stream";
  nlohmann::ordered_json json = {{"bucket", outcome.bucket},
                                 {"executor", used},
                                 {"graph_nodes", stats.graphNodes},
                                 {"capture_ms", stats.captureMillis},
                                 {"milliseconds", outcome.milliseconds},
                                 {"outputs", outputsJson(job, outcome)}};
  if (!job.stem.empty())
    json["stem"] = job.stem;
  return json;
}

Status report(const RunFlags &options, const Entry &entry, const Runner &runner,
              const std::vector<Job> &jobs, const std::vector<Outcome> &outcomes) {
  if (!options.json) {
    std::vector<std::vector<std::string>> rows = {{"output", "type", "file"}};
    for (size_t j = 0; j < jobs.size(); ++j)
      for (size_t i = 0; i < outcomes[j].outputs.size(); ++i) {
        const HostTensor &output = outcomes[j].outputs[i];
        rows.push_back({output.name, formatShape(dtypeName(output.dtype), output.sizes),
                        jobs[j].outputs.empty() ? "-" : jobs[j].outputs[i]});
      }
    return printOut(formatTable(rows));
  }
  nlohmann::ordered_json fields = {
      {"plan", options.plan}, {"entry", entry.name}, {"target", deviceName(runner.plan().target)}};
  nlohmann::ordered_json runs = nlohmann::ordered_json::array();
  for (size_t j = 0; j < jobs.size(); ++j)
    runs.push_back(
        jobJson(jobs[j], outcomes[j], runner.stats(entry, outcomes[j].bucket), options.executor));
  if (jobs[0].stem.empty())
    fields.update(runs[0]);
  else
    fields["runs"] = std::move(runs);
  return printJson("run", fields);
}

Status run(const RunFlags &options) {
  CGC_ASSIGN_OR_RETURN(const auto sources, parseInputSources(options.inputs));
  // All arguments are checked before the device is touched.
  CGC_ASSIGN_OR_RETURN(const Plan plan, Plan::load(options.plan, Plan::Verify::Metadata));
  CGC_TRY(checkThreads(plan.data(), options.threads, executorOf(options.executor)));
  if (options.seed && !plan.data().findState(kSeedState))
    return Status(Code::Usage, "--seed is for plans that draw random numbers, and this one draws "
                               "none: leave it out");
  CGC_ASSIGN_OR_RETURN(const Entry *entry, chooseEntry(plan.data(), options.entry));
  CGC_ASSIGN_OR_RETURN(std::vector<Job> jobs, makeJobs(sources, options.output));
  FileArguments files;
  files.reads(options.plan).reads(options.opLibraries).reads(options.hostModules);
  files.reads(options.checkpoint).reads(options.checkpoint + "/" + std::string(kModelFile));
  // Holds one job's inputs at a time: those of all jobs together may not fit into memory.
  std::optional<BoundInputs> inputs;
  for (Job &job : jobs) {
    CGC_ASSIGN_OR_RETURN(inputs, bindInputs(*entry, job.sources, options.batch));
    const std::string output =
        isPattern(options.output) ? fillPattern(options.output, job.stem) : options.output;
    job.outputs = outputPaths(output, entry->buckets[inputs->bucket].outputs.size());
    for (const InputSource &source : job.sources)
      files.reads(source.file);
    for (const std::string &path : job.outputs)
      files.writes("--output", path);
  }
  CGC_TRY(files.check());

  Progress progress(2);
  progress.begin("load " + options.plan);
  CGC_ASSIGN_OR_RETURN(const auto runner,
                       Runner::create(options.plan, options.opLibraries,
                                      {.executor = executorOf(options.executor),
                                       .programmaticEdges = !options.noPdl,
                                       .parallelBranches = !options.noBranches,
                                       .threads = options.threads},
                                      options.separateBuffers, options.hostModules));
  if (!options.checkpoint.empty())
    CGC_TRY(runner->loadWeights(options.checkpoint).withContext("--checkpoint"));
  if (options.seed) {
    int64_t seed = *options.seed;
    CGC_TRY(runner->context().writeState(kSeedState, {&seed, DType::I64, DeviceKind::Cpu, {}, {}}));
  }
  progress.begin(jobs.size() == 1 ? "run " + entry->name
                                  : fmt::format("run {} {} times", entry->name, jobs.size()));
  std::vector<Outcome> outcomes;
  for (const Job &job : jobs) {
    if (jobs.size() > 1) {
      CGC_ASSIGN_OR_RETURN(inputs, bindInputs(*entry, job.sources, options.batch));
    }
    const auto start = std::chrono::steady_clock::now();
    CGC_ASSIGN_OR_RETURN(auto outputs, runner->run(*entry, *inputs));
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    CGC_TRY(writeOutputs(outputs, job.outputs));
    for (HostTensor &output : outputs)
      output.bytes = {}; // Frees the values: only the type is reported.
    outcomes.push_back({inputs->bucket, std::move(outputs), time.count()});
  }
  return report(options, *entry, *runner, jobs, outcomes);
}

} // namespace

Verb addRun(CLI::App &app) {
  auto options = std::make_shared<RunFlags>();
  CLI::App *command = app.add_subcommand("run", "Run one entry of a plan");
  command->add_option("plan", options->plan, "The plan")->type_name("PLAN")->required();
  command->add_option("--entry", options->entry, "The method to run [the plan's only one]")
      ->type_name("NAME");
  command
      ->add_option(
          "--input", options->inputs,
          "Values of an input: a file, random ones, or with * several files, each of which "
          "is one run; once for each input")
      ->type_name("NAME=@X.npy|NAME=random:SEED")
      ->allow_extra_args(false);
  command
      ->add_option("--batch", options->batch,
                   "Use the bucket with this dimension 0 [the first that fits the files; a batch "
                   "that no bucket has is split and padded if rows are independent]")
      ->type_name("N")
      ->check(CLI::Range(int64_t(1), kMaxListedBatch));
  command
      ->add_option("--checkpoint", options->checkpoint,
                   "Run a training plan with these weights: a checkpoint's folder, or a file of "
                   "safetensors")
      ->type_name("DIR")
      ->check(requireName);
  command
      ->add_option("--output", options->output,
                   "Where to write the output; several become Y.0.npy, Y.1.npy, ...; * stands for "
                   "the same text as in --input")
      ->type_name("Y.npy")
      ->check(requireName);
  addExecutorOption(*command, options->executor);
  addThreadsOption(*command, options->threads);
  command->add_option("--seed", options->seed, "The seed of a plan that draws random numbers [0]")
      ->type_name("N");
  command->add_flag("--no-pdl", options->noPdl,
                    "Start each kernel only when the one ahead of it has ended: no programmatic "
                    "dependent launch");
  command->add_flag("--no-branches", options->noBranches,
                    "Run one record after another, as far as they are in parallel branches");
  command->add_flag(
      "--separate-buffers", options->separateBuffers,
      "Allocate each weight and each part of the arena by itself, for memory checkers; "
      "works best for a plan compiled with --no-reuse");
  addOpLibraryOption(*command, options->opLibraries);
  addHostModulesOption(*command, options->hostModules);
  command->add_flag("--json", options->json, "Print the result as JSON");
  command->footer(
      "Examples:\n"
      "  cgc run model.cgplan --entry encode_text --input text=random:0 --output text.npy\n"
      "  cgc run model.cgplan --entry encode_image --input image=@image.npy --output "
      "image_features.npy\n"
      "  cgc run model.cgplan --entry forward --input image=random:0 --input text=random:1 --json\n"
      "  cgc run model.cgplan --entry encode_text --input text=random:0 --executor reference");
  return {command, [options] { return run(*options); }, [options] { return options->json; }};
}

} // namespace cgc::tool
