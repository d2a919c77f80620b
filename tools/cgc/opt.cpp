// cgc opt: runs passes on IR text.
#include "passes/pipeline.h"
#include "runtime/base/file.h"
#include "tools/cgc/console.h"
#include "tools/cgc/evaluator.h"
#include "tools/cgc/graphviz.h"
#include "tools/cgc/pass_options.h"
#include "tools/cgc/pass_plugins.h"
#include "tools/cgc/verbs.h"

#include "ir/text.h"
#include "ir/verifier.h"

#include "llvm/ADT/ScopeExit.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <iostream>
#include <iterator>

namespace cgc::tool {

namespace {

struct Options {
  std::string input, output = "-", passes, target = "cpu", precision = "keep";
  std::vector<std::string> passPlugins;
  passes::InstrumentationOptions instrumentation;
};

Result<std::string> readText(const std::string &path) {
  if (path == "-")
    return std::string(std::istreambuf_iterator<char>(std::cin), {});
  CGC_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  // Of text the parser says what is wrong with it.
  const std::string kind = describeForeignFile(path);
  if (kind != kIrTextFile && kind != kTextFile)
    return Status(Code::InvalidFile,
                  fmt::format("'{}' is {}; cgc opt reads IR text, for example what cgc compile "
                              "--dump-dir writes",
                              path, kind.empty() ? "of no kind that cgc knows" : kind));
  return std::string(reinterpret_cast<const char *>(file.bytes().data()), file.bytes().size());
}

Status runPasses(ir::Module &module, const passes::Pipeline &pipeline,
                 passes::PassContext context) {
  const auto finish = llvm::make_scope_exit([&] { pipeline.finish(); }); // Also after a failure.
  CGC_TRY(pipeline.prepare(module, context));
  for (const auto &graph : module.graphs())
    CGC_TRY(pipeline.run(*graph, context));
  return Status::ok();
}

Status opt(const Options &options) {
  passes::PipelineBuilder builder;
  CGC_TRY(loadPassPlugins(options.passPlugins, builder));
  CGC_ASSIGN_OR_RETURN(passes::Instrumentation instrumentation,
                       passes::makeInstrumentation(options.instrumentation, llvm::errs(),
                                                   builder.registeredPasses()));
  builder.setPasses(options.passes).setInstrumentation(std::move(instrumentation));
  CGC_ASSIGN_OR_RETURN(const passes::Pipeline pipeline, builder.build());

  CGC_ASSIGN_OR_RETURN(const std::string text, readText(options.input));
  ir::Diagnostics diagnostics;
  const auto module =
      ir::parseModule(text, options.input == "-" ? "<stdin>" : options.input, diagnostics);
  if (!module || !ir::verify(*module, diagnostics))
    return diagnostics.toStatus(Code::InvalidFile);

  RuntimeEvaluator evaluator;
  const passes::PassContext context{.target = *parseDevice(options.target),
                                    .precision = precisionOf(options.precision),
                                    .evaluator = &evaluator,
                                    .diagnostics = &diagnostics};
  CGC_TRY(withDiagnostics(runPasses(*module, pipeline, context), diagnostics));
  const std::string result = ir::toString(*module);
  return options.output == "-" ? printOut(result) : writeFile(options.output, result);
}

} // namespace

Verb addOpt(CLI::App &app) {
  auto options = std::make_shared<Options>();
  CLI::App *command = app.add_subcommand("opt", "Run passes on IR text");
  command->add_option("input", options->input, "IR text; - reads standard input")
      ->type_name("IN.cgir")
      ->required();
  command->add_option("--passes", options->passes, "Passes to run, with commas between them")
      ->type_name("P,...")
      ->required();
  command->add_option("-o,--output", options->output, "Where to write; - is standard output")
      ->type_name("OUT.cgir")
      ->check(requireName)
      ->capture_default_str();
  command->add_option("--target", options->target, "The device that specialize compiles for")
      ->check(CLI::IsMember({"cuda", "cpu"}))
      ->capture_default_str();
  addPrecisionOption(*command, options->precision);
  addPassPluginOption(*command, options->passPlugins);
  addPassOptions(*command, options->instrumentation);
  command->footer("Examples:\n"
                  "  cgc opt model.cgir --passes cse,dce -o smaller.cgir\n"
                  "  cgc opt - --passes canonicalize --print-after-all < model.cgir");
  return {command, [options] { return opt(*options); }};
}

} // namespace cgc::tool
