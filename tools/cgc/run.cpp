// cgc run: runs one entry of a plan and writes its outputs.
#include "runtime/base/file.h"
#include "tools/cgc/console.h"
#include "tools/cgc/file_arguments.h"
#include "tools/cgc/inputs.h"
#include "tools/cgc/libraries.h"
#include "tools/cgc/list_option.h"
#include "tools/cgc/npy.h"
#include "tools/cgc/progress.h"
#include "tools/cgc/runner.h"
#include "tools/cgc/verbs.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <filesystem>

namespace cgc::tool {

namespace {

struct Options {
  std::string plan, entry, output, executor = "graph";
  std::vector<std::string> inputs;
  std::optional<int64_t> batch;
  std::vector<std::string> opLibraries;
  bool noPdl = false, separateBuffers = false, json = false;
};

/// One output: as named. Several: y.0.npy, y.1.npy, ...; a stream takes all.
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

Status checkPaths(const Options &options, const std::vector<InputSource> &sources,
                  const std::vector<std::string> &outputs) {
  FileArguments files;
  files.reads(options.plan).reads(options.opLibraries);
  for (const InputSource &source : sources)
    files.reads(source.file);
  for (const std::string &output : outputs)
    files.writes("--output", output);
  return files.check();
}

/// All files or, if one cannot be written, none.
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

Status report(const Options &options, const Entry &entry, const Runner &runner, size_t bucket,
              const std::vector<HostTensor> &outputs, const std::vector<std::string> &paths,
              double milliseconds) {
  const BucketStats stats = runner.stats(entry, bucket);
  if (!options.json) {
    std::vector<std::vector<std::string>> rows = {{"output", "type", "file"}};
    for (size_t i = 0; i < outputs.size(); ++i)
      rows.push_back({outputs[i].name, formatShape(dtypeName(outputs[i].dtype), outputs[i].sizes),
                      paths.empty() ? "-" : paths[i]});
    return printOut(formatTable(rows));
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (size_t i = 0; i < outputs.size(); ++i) {
    list.push_back({{"name", outputs[i].name},
                    {"dtype", dtypeName(outputs[i].dtype)},
                    {"shape", outputs[i].sizes}});
    if (!paths.empty())
      list.back()["path"] = paths[i];
  }
  return printJson("run", {{"plan", options.plan},
                           {"entry", entry.name},
                           {"bucket", bucket},
                           {"target", deviceName(runner.plan().target)},
                           {"executor", stats.graphNodes > 0 ? "graph" : "stream"},
                           {"graph_nodes", stats.graphNodes},
                           {"capture_ms", stats.captureMillis},
                           {"milliseconds", milliseconds},
                           {"outputs", std::move(list)}});
}

Status run(const Options &options) {
  CGC_ASSIGN_OR_RETURN(const auto sources, parseInputSources(options.inputs));
  // Everything that the arguments can have wrong is found before the device is touched.
  CGC_ASSIGN_OR_RETURN(const Plan plan, Plan::load(options.plan, Plan::Verify::Metadata));
  CGC_ASSIGN_OR_RETURN(const Entry *entry, chooseEntry(plan.data(), options.entry));
  CGC_ASSIGN_OR_RETURN(BoundInputs inputs, bindInputs(*entry, sources, options.batch));
  const auto paths = outputPaths(options.output, entry->buckets[inputs.bucket].outputs.size());
  CGC_TRY(checkPaths(options, sources, paths));

  Progress progress(2);
  progress.begin("load " + options.plan);
  CGC_ASSIGN_OR_RETURN(const auto runner, Runner::create(options.plan, options.opLibraries,
                                                         {.executor = executorOf(options.executor),
                                                          .programmaticEdges = !options.noPdl},
                                                         options.separateBuffers));
  progress.begin("run " + entry->name);
  const auto start = std::chrono::steady_clock::now();
  CGC_ASSIGN_OR_RETURN(const auto outputs, runner->run(*entry, inputs.bucket, inputs.tensors));
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  CGC_TRY(writeOutputs(outputs, paths));
  return report(options, *entry, *runner, inputs.bucket, outputs, paths, time.count());
}

} // namespace

Verb addRun(CLI::App &app) {
  auto options = std::make_shared<Options>();
  CLI::App *command = app.add_subcommand("run", "Run one entry of a plan");
  command->add_option("plan", options->plan, "The plan")->type_name("PLAN")->required();
  command->add_option("--entry", options->entry, "The method to run [the plan's only one]")
      ->type_name("NAME");
  command
      ->add_option("--input", options->inputs,
                   "Values of an input: a file, or random ones; once for each input")
      ->type_name("NAME=@X.npy|NAME=random:SEED")
      ->allow_extra_args(false);
  command
      ->add_option("--batch", options->batch,
                   "Use the bucket with this dimension 0 [the first that fits the files]")
      ->type_name("N")
      ->check(CLI::Range(int64_t(1), kMaxBatch));
  command
      ->add_option("--output", options->output,
                   "Where to write the output; several become Y.0.npy, Y.1.npy, ...")
      ->type_name("Y.npy")
      ->check(requireName);
  addExecutorOption(*command, options->executor);
  command->add_flag("--no-pdl", options->noPdl,
                    "Start each kernel only when the one ahead of it has ended: no programmatic "
                    "dependent launch");
  command->add_flag("--separate-buffers", options->separateBuffers,
                    "Allocate each weight and each part of the arena apart, for memory checkers; "
                    "best of a plan compiled with --no-reuse");
  addOpLibraryOption(*command, options->opLibraries);
  command->add_flag("--json", options->json, "Print the result as JSON");
  command->footer(
      "Examples:\n"
      "  cgc run model.cgplan --entry encode_text --input text=random:0 --output text.npy\n"
      "  cgc run model.cgplan --entry encode_image --input image=@image.npy --output "
      "image_features.npy\n"
      "  cgc run model.cgplan --entry forward --input image=random:0 --input text=random:1 --json");
  return {command, [options] { return run(*options); }, [options] { return options->json; }};
}

} // namespace cgc::tool
