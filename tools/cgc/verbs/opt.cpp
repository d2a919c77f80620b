// cgc opt: runs passes on IR text.
#include "driver/compile.h"
#include "driver/runtime_evaluator.h"
#include "passes/manager/reproducer.h"
#include "passes/pipeline.h"
#include "runtime/base/file.h"
#include "runtime/base/write_file.h"
#include "tools/cgc/cli/console.h"
#include "tools/cgc/cli/file_arguments.h"
#include "tools/cgc/cli/libraries.h"
#include "tools/cgc/cli/pass_flags.h"
#include "tools/cgc/cli/pass_plugins.h"
#include "tools/cgc/cli/version.h"
#include "tools/cgc/io/file_kind.h"
#include "tools/cgc/report/module_summary.h"
#include "tools/cgc/verbs/verbs.h"

#include "ir/text/text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>

namespace cgc::tool {

namespace {

struct OptFlags {
  std::string input, output = "-", passes, stopAfter, target = "cpu";
  std::vector<std::string> passPlugins;
  bool runReproducer = false, verifyRoundTrip = false, json = false;
  passes::InstrumentationOptions instrumentation;
};

/// Checks that the user names each recorded plug-in again: cgc does not run code only because a
/// file of IR text names it. Other folders and other builds are accepted. Usage, with the whole
/// command to run, if one is missing.
Status checkPlugins(llvm::ArrayRef<passes::UsedPlugin> recorded, const OptFlags &options) {
  bool isMissing = false;
  std::string command = "cgc opt --run-reproducer " + options.input;
  for (const passes::UsedPlugin &plugin : recorded) {
    const auto name = std::filesystem::path(plugin.path).filename();
    const auto given = llvm::find_if(options.passPlugins, [&](const std::string &path) {
      return std::filesystem::path(path).filename() == name;
    });
    if (given == options.passPlugins.end()) {
      isMissing = true;
      command += fmt::format(" --pass-plugin '{}'", plugin.path);
      continue;
    }
    command += fmt::format(" --pass-plugin '{}'", *given);
    CGC_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(*given));
    if (hash64(file.bytes()) != plugin.hash)
      logInfo(fmt::format("'{}' is another build than the '{}' that '{}' records", *given,
                          plugin.path, options.input));
  }
  return isMissing ? Status(Code::Usage, fmt::format("'{}' was left by a run with plug-ins; name "
                                                     "them again if you trust them: {}",
                                                     options.input, command))
                   : Status::ok();
}

/// Takes the pipeline and the target from the header of a reproducer.
Status readReproducer(const std::string &text, OptFlags &options) {
  CGC_ASSIGN_OR_RETURN(const passes::Reproducer reproducer,
                       passes::parseReproducer(text, options.input));
  const passes::RunOrigin &origin = reproducer.origin;
  options.passes = reproducer.pipeline;
  options.target = deviceName(origin.target);
  if (origin.producer != versionText())
    logInfo(fmt::format("'{}' is by {}; this is {}", options.input,
                        origin.producer.empty() ? "an unknown version" : origin.producer,
                        versionText()));
  return checkPlugins(origin.plugins, options);
}

Result<passes::Pipeline> makePipeline(const OptFlags &options) {
  passes::PipelineBuilder builder;
  CGC_ASSIGN_OR_RETURN(auto plugins, loadPassPlugins(options.passPlugins, builder));
  auto asked = withOrigin(options.instrumentation, std::move(plugins));
  asked.origin.target = *parseDevice(options.target);
  CGC_ASSIGN_OR_RETURN(
      passes::Instrumentation instrumentation,
      passes::makeInstrumentation(asked, llvm::errs(), builder.registeredPasses()));
  builder.setPasses(options.passes)
      .setStopAfter(options.stopAfter)
      .setInstrumentation(std::move(instrumentation));
  CGC_ASSIGN_OR_RETURN(passes::Pipeline pipeline, builder.build());
  CGC_TRY(pipeline.checkExplained());
  return pipeline;
}

Status runPasses(ir::Module &module, const passes::Pipeline &pipeline,
                 passes::PassContext context) {
  const auto finish =
      llvm::make_scope_exit([&] { pipeline.finish(); }); // Runs after a failure, too.
  CGC_TRY(pipeline.prepare(module, context));
  for (const auto &graph : module.graphs())
    CGC_TRY(pipeline.run(*graph, context));
  return Status::ok();
}

nlohmann::ordered_json matchFailureJson(const passes::MatchFailure &failure) {
  return {{"pattern", failure.pattern},  {"reason", failure.reason}, {"graph", failure.graph},
          {"node", failure.node},        {"file", failure.loc.file}, {"line", failure.loc.line},
          {"module", failure.loc.module}};
}

Status opt(OptFlags options) {
  const passes::InstrumentationOptions &instrumentation = options.instrumentation;
  FileArguments files;
  if (options.input != "-")
    files.reads(options.input);
  if (options.output != "-")
    files.writes("-o", options.output, /*replaced=*/options.input);
  CGC_TRY(files.reads(options.passPlugins)
              .writes("--crash-reproducer", instrumentation.crashReproducer)
              .dumpsTo(instrumentation.dumpDir)
              .check());
  std::string text;
  if (options.runReproducer) {
    CGC_ASSIGN_OR_RETURN(text, readIrText(options.input));
    CGC_TRY(readReproducer(text, options));
  }
  if (options.passes.empty())
    options.passes = instrumentation.explain;
  nlohmann::ordered_json failures = nlohmann::ordered_json::array();
  if (options.json)
    options.instrumentation.matchFailed = [&](const passes::MatchFailure &failure) {
      failures.push_back(matchFailureJson(failure));
    };
  CGC_ASSIGN_OR_RETURN(const passes::Pipeline pipeline, makePipeline(options));
  if (!options.runReproducer) {
    CGC_ASSIGN_OR_RETURN(text, readIrText(options.input));
  }
  CGC_ASSIGN_OR_RETURN(const auto module, parseIrText(text, options.input));
  if (options.verifyRoundTrip)
    CGC_TRY(ir::checkRoundTrip(*module));

  ir::Diagnostics diagnostics;
  const DeviceKind target = *parseDevice(options.target);
  driver::RuntimeEvaluator evaluator(target, libraryFolder());
  const passes::PassContext context{
      .target = target, .evaluator = &evaluator, .diagnostics = &diagnostics};
  CGC_TRY(
      withReproducer(driver::withDiagnostics(runPasses(*module, pipeline, context), diagnostics),
                     instrumentation));
  if (options.runReproducer)
    logInfo(
        "no pass failed: the bug is fixed, or it depends on the bytes of parameters, which IR text "
        "does not hold");
  if (options.verifyRoundTrip)
    CGC_TRY(ir::checkRoundTrip(*module));
  const std::string result = ir::toString(*module);
  const bool isPrinted = options.output == "-";
  if (!isPrinted)
    CGC_TRY(writeFile(options.output, result));
  if (!options.json)
    return isPrinted ? printOut(result) : Status::ok();
  nlohmann::ordered_json fields = {
      {"input", options.input}, {"target", options.target}, {"passes", options.passes}};
  if (!instrumentation.explain.empty())
    fields["explain"] = {{"pass", instrumentation.explain}, {"failures", std::move(failures)}};
  fields.update(moduleJson(*module, options.output));
  if (isPrinted)
    fields["text"] = result;
  return printJson("opt", fields);
}

} // namespace

Verb addOpt(CLI::App &app) {
  auto options = std::make_shared<OptFlags>();
  CLI::App *command = app.add_subcommand("opt", "Run passes on IR text");
  command->add_option("input", options->input, "IR text; - reads standard input")
      ->type_name("IN.cgir")
      ->required();
  command
      ->add_option(
          "--passes", options->passes,
          "Comma-separated passes to run, each with its options in braces; without it, none")
      ->type_name("P{O=V},...");
  command->add_option("-o,--output", options->output, "Where to write; - is standard output")
      ->type_name("OUT.cgir")
      ->check(requireName)
      ->capture_default_str();
  command->add_option("--target", options->target, "The device that specialize compiles for")
      ->check(CLI::IsMember({"cuda", "cpu"}))
      ->capture_default_str();
  addPassPluginOption(*command, options->passPlugins);
  command
      ->add_option("--stop-after", options->stopAfter,
                   "Stop after the first pass of this name, or after this position")
      ->type_name("P|N");
  command
      ->add_flag(
          "--run-reproducer", options->runReproducer,
          "IN.cgir is a file of --crash-reproducer: run the pass that failed and those after it")
      ->excludes("--passes")
      ->excludes("--target");
  command->add_flag("--verify-roundtrip", options->verifyRoundTrip,
                    "Fail unless the text of the IR, before and after, parses back to itself");
  command->add_flag("--json", options->json, "Print the result as JSON; the text is a field of it");
  addPassOptions(*command, options->instrumentation);
  command->footer(
      defaultPassesText() +
      "\nExamples:\n"
      "  cgc opt model.cgir --passes cse,dce -o smaller.cgir --json\n"
      "  cgc opt - --passes canonicalize --print-changed < model.cgir\n"
      "  cgc opt model.cgir --passes 'canonicalize{max-rewrites=3},precision{to=f16},dce' "
      "--stop-after canonicalize\n"
      "  cgc opt model.cgir --passes acme-pass --pass-plugin libacme.so --crash-reproducer "
      "crash.cgir\n"
      "  cgc opt model.cgir --explain select-attention -o /dev/null\n"
      "  cgc opt model.cgir --passes canonicalize,cse,dce --pass-limit 2 --verify-roundtrip");
  return {command, [options] { return opt(*options); }, [options] { return options->json; }};
}

} // namespace cgc::tool
