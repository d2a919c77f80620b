// cgc inspect: shows what is in a file; needs no GPU, and LibTorch only for TorchScript files.
#include "ir/text/dot.h"
#include "passes/pipeline.h"
#include "runtime/base/write_file.h"
#include "runtime/exec/bucket_choice.h"
#include "runtime/plan/plan_file.h"
#include "tools/cgc/cli/console.h"
#include "tools/cgc/cli/file_arguments.h"
#include "tools/cgc/cli/host_modules.h"
#include "tools/cgc/cli/libraries.h"
#include "tools/cgc/cli/pass_flags.h"
#include "tools/cgc/draw/graphviz.h"
#include "tools/cgc/draw/memory_svg.h"
#include "tools/cgc/draw/plan_dot.h"
#include "tools/cgc/io/file_kind.h"
#include "tools/cgc/io/model_file.h"
#include "tools/cgc/report/capturability.h"
#include "tools/cgc/report/module_summary.h"
#include "tools/cgc/report/plan_summary.h"
#include "tools/cgc/verbs/runner.h"
#include "tools/cgc/verbs/verbs.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cgc::tool {

namespace {

struct InspectFlags {
  std::string file, entry, dot, svg, executor;
  std::vector<std::string> inputs;
  bool capturable = false, json = false;
};

/// Writes the drawings that the options ask for. `finishSvg` completes the SVG that Graphviz drew.
Status draw(
    const InspectFlags &options, const std::string &dotText,
    llvm::function_ref<std::string(const std::string &)> finishSvg = [](auto &svg) {
      return svg;
    }) {
  if (options.dot == "-")
    CGC_TRY(printOut(dotText));
  else if (!options.dot.empty())
    CGC_TRY(writeFile(options.dot, dotText));
  if (options.svg.empty())
    return Status::ok();
  CGC_ASSIGN_OR_RETURN(const std::string svg, drawSvg(dotText));
  return writeFile(options.svg, finishSvg(svg));
}

/// Prints `text`, unless --dot has written the drawing to stdout.
Status printResult(const InspectFlags &options, std::string_view text) {
  return options.dot == "-" ? Status::ok() : printOut(text);
}

Status inspectPlan(const InspectFlags &options) {
  CGC_ASSIGN_OR_RETURN(const Plan plan, Plan::load(options.file, Plan::Verify::Metadata));
  if (!options.entry.empty())
    CGC_TRY(findEntry(plan.data(), options.entry).status());
  CGC_TRY(draw(options, planDot(plan.data(), options.entry), [&](const std::string &drawing) {
    return planSvg(plan.data(), options.entry, drawing);
  }));
  if (!options.executor.empty())
    CGC_TRY(Runner::prepareAll(options.file, executorOf(options.executor)));
  if (options.json) {
    auto fields = planJson(plan.data(), options.file, plan.fileBytes());
    fields["verified"] = options.executor.empty() ? "metadata" : "all";
    if (!options.executor.empty())
      fields["executor"] = options.executor;
    return printResult(options, jsonText("plan", fields));
  }
  const char *const verified =
      options.executor.empty()
          ? "\nThe metadata is verified. The weights are not: run and compare verify them.\n"
      : hasHostCalls(plan.data())
          ? "\nMetadata and weights are verified. The reference executor can run every record "
            "here, with the host functions above.\n"
          : "\nMetadata and weights are verified. The reference executor can run every record "
            "here.\n";
  return printResult(options, planText(plan.data(), options.file, plan.fileBytes()) +
                                  recordsText(plan.data()) + verified);
}

/// The method to draw: `entry` if given, else forward, else the first. Null if the module has no
/// method.
Result<const ir::Graph *> chooseGraph(const ir::Module &root, const std::string &entry) {
  if (!entry.empty()) {
    if (const ir::Graph *graph = root.findGraph(entry))
      return graph;
    return Status(Code::Usage, fmt::format("there is no method '{}'", entry));
  }
  if (const ir::Graph *graph = root.findGraph("forward"))
    return graph;
  return root.graphs().empty() ? nullptr : root.graphs().front().get();
}

/// The summary of a module. Made before passes change the module; printed after the drawing, which
/// may fail.
std::string summarize(const InspectFlags &options, const ir::Module &root, std::string_view kind) {
  return options.json ? jsonText(kind, moduleJson(root, options.file))
                      : moduleText(root, options.file);
}

Status drawGraph(const InspectFlags &options, const ir::Module &root) {
  if (options.dot.empty() && options.svg.empty())
    return Status::ok();
  CGC_ASSIGN_OR_RETURN(const ir::Graph *graph, chooseGraph(root, options.entry));
  if (!graph)
    return Status(Code::Usage, "there is no method to draw");
  std::string text;
  llvm::raw_string_ostream stream(text);
  ir::writeDot(stream, *graph);
  return draw(options, stream.str());
}

Status inspectIr(const InspectFlags &options) {
  CGC_ASSIGN_OR_RETURN(const std::string text, readIrText(options.file));
  CGC_ASSIGN_OR_RETURN(const auto root, parseIrText(text, options.file));
  CGC_TRY(drawGraph(options, *root));
  return printResult(options, summarize(options, *root, "ir"));
}

Status inspectModel(const InspectFlags &options) {
  CGC_ASSIGN_OR_RETURN(const ModelFile model,
                       importModel({options.file}, frontend::ImportFor::Inference));
  const auto &root = model.root;
  const std::string summary =
      summarize(options, *root, model.shapes.empty() ? "torchscript" : "exported");
  if (!options.dot.empty() || !options.svg.empty()) {
    // Inlines the calls of submodules, so that the drawing shows whole methods.
    passes::PipelineBuilder builder;
    CGC_ASSIGN_OR_RETURN(const passes::Pipeline pipeline, builder.setPasses("inline").build());
    CGC_TRY(pipeline.prepare(*root, {}));
    CGC_TRY(drawGraph(options, *root));
  }
  return printResult(options, summary);
}

/// Sets `printed` once the report is on stdout.
Status inspectCapturability(const InspectFlags &options, bool &printed) {
  CGC_ASSIGN_OR_RETURN(auto inputs, parseInputSpecs(options.inputs));
  CGC_ASSIGN_OR_RETURN(const ModelFile model,
                       importModel({options.file}, frontend::ImportFor::Inference));
  CGC_ASSIGN_OR_RETURN(inputs, withExamples(std::move(inputs), model.shapes));
  std::vector<std::string> entries;
  if (!options.entry.empty())
    entries.push_back(options.entry);
  CGC_ASSIGN_OR_RETURN(const Capturability result,
                       analyzeCapturability(*model.root, inputs, entries));
  CGC_TRY(options.json ? printJson("capturability", capturabilityJson(result, options.file))
                       : printOut(capturabilityText(result)));
  printed = true;
  const size_t count = result.offenders.errors().size();
  return count == 0 ? Status::ok()
                    : Status(Code::Unsupported,
                             fmt::format("'{}' cannot be captured as it is: {} {}", options.file,
                                         count, count == 1 ? "offender" : "offenders"));
}

Status inspect(const InspectFlags &options, bool &printed) {
  const bool draws = !options.dot.empty() || !options.svg.empty();
  if (options.capturable && draws)
    return Status(Code::Usage, "--capturable draws nothing; leave --dot and --svg out");
  if (!options.inputs.empty() && !options.capturable)
    return Status(Code::Usage, "--input is for --capturable");
  if (options.dot == "-" && options.json)
    return Status(Code::Usage, "--dot - and --json both go to standard output; choose one");
  if (!options.entry.empty() && !draws && !options.capturable)
    return Status(Code::Usage,
                  "--entry is the method to draw or to check; add --dot, --svg or --capturable");
  CGC_ASSIGN_OR_RETURN(
      const FileKind kind,
      kindOf(options.file, "cgc inspects TorchScript files, .pt2 files, IR text and plans"));
  const bool isModel = kind == FileKind::TorchScript || kind == FileKind::Exported;
  if (options.capturable && !isModel)
    return Status(Code::Usage, "--capturable checks models; everything in a plan can be captured");
  if (!options.executor.empty() && kind != FileKind::Plan)
    return Status(Code::Usage, "--executor is for plans");
  FileArguments files;
  if (options.dot != "-")
    files.writes("--dot", options.dot);
  CGC_TRY(files.reads(options.file).writes("--svg", options.svg).check());
  switch (kind) {
  case FileKind::Plan:
    return inspectPlan(options);
  case FileKind::Ir:
    return inspectIr(options);
  case FileKind::TorchScript:
  case FileKind::Exported:
    return options.capturable ? inspectCapturability(options, printed) : inspectModel(options);
  }
  return Status::ok();
}

} // namespace

Verb addInspect(CLI::App &app) {
  auto options = std::make_shared<InspectFlags>();
  CLI::App *command = app.add_subcommand("inspect", "Show what is in a model, IR text or a plan");
  command->add_option("file", options->file, "A .pt, .pt2, .cgir or .cgplan file")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("--entry", options->entry,
                   "The method to draw [a plan: all; else forward or the first] or to check [all]")
      ->type_name("NAME");
  command
      ->add_option("--dot", options->dot,
                   "Write the graph as DOT; - is standard output, in place of the summary")
      ->type_name("F")
      ->check(requireName);
  command
      ->add_option("--svg", options->svg,
                   "Draw the graph with Graphviz; a plan: the use of its arena too")
      ->type_name("F")
      ->check(requireName);
  command->add_flag("--capturable", options->capturable,
                    "List everything that a CUDA graph cannot contain, instead of the summary");
  command
      ->add_option("--input", options->inputs,
                   "With --capturable: type of an input, so that shape-dependent ops are checked")
      ->type_name("NAME=DTYPE[SIZES]")
      ->allow_extra_args(false);
  command
      ->add_option("--executor", options->executor,
                   "Also verify a whole plan and that the reference executor can run it here")
      ->check(CLI::IsMember({"reference"}));
  command->add_flag("--json", options->json, "Print the result as JSON");
  command->footer(
      "Verifies only the metadata of a plan, which is fast; run and compare verify the weights, "
      "too.\n\n"
      "Examples:\n"
      "  cgc inspect model.cgplan\n"
      "  cgc inspect model.cgplan --executor reference\n"
      "  cgc inspect model.pt --svg model.svg --entry encode_text\n"
      "  cgc inspect model.cgplan --dot plan.dot --json\n"
      "  cgc inspect model.pt --capturable --input 'image=f32[1,3,224,224]'");
  // A report is a result, so no JSON error object follows it.
  auto printed = std::make_shared<bool>(false);
  return {command, [=] { return inspect(*options, *printed); },
          [=] { return options->json && !*printed; }};
}

} // namespace cgc::tool
