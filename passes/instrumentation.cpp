// Instrumentation: the standard callbacks.
#include "passes/instrumentation.h"

#include "ir/dot.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "passes/pass_manager.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"

#include <chrono>
#include <tuple>

namespace cgc::passes {
namespace {

std::string title(const PassRun &run) {
  std::string title = std::string(run.pass);
  return run.graph ? title + " on @" + run.graph->name() : title;
}

PassCallbacks printAfter(const InstrumentationOptions &options, llvm::raw_ostream &log) {
  auto wanted = [all = options.printAfterAll, names = options.printAfter](std::string_view pass) {
    return all || llvm::is_contained(names, pass);
  };
  return {.before = {},
          .after =
              [wanted, &log](const PassRun &run, Changed) {
                if (wanted(run.pass))
                  log << "; after " << title(run) << "\n" << toString(run);
                return Status::ok();
              },
          .finish = {}};
}

Status writeFile(const std::string &path, llvm::function_ref<void(llvm::raw_ostream &)> write) {
  std::error_code error;
  llvm::raw_fd_ostream file(path, error);
  if (!error) {
    write(file);
    file.close();
    error = file.error();
    file.clear_error();
  }
  return error ? Status(Code::Failed, path + ": cannot write: " + error.message()) : Status::ok();
}

/// Declares the parameter `path` of `from` in `to`, with the submodules on the way.
void declareParameter(ir::Module &to, const ir::Module &from, llvm::StringRef path) {
  const ir::Parameter *parameter = from.findParameter(path);
  if (!parameter || to.findParameter(path))
    return;
  ir::Module *module = &to;
  auto [head, rest] = path.split('.');
  for (; !rest.empty(); std::tie(head, rest) = rest.split('.')) {
    ir::Module *child = module->findSubmodule(head);
    module = child ? child : module->addSubmodule(std::make_unique<ir::Module>(head.str(), ""));
  }
  module->addParameter({head.str(), parameter->kind, parameter->type, nullptr});
}

/// Text that can be parsed and run on its own: a graph that reads parameters comes in a module that
/// declares them.
std::string standaloneText(const PassRun &run) {
  if (!run.graph || !run.graph->owner())
    return toString(run);
  ir::Module module(run.graph->owner()->name(), run.graph->owner()->className());
  for (const ir::Node &node : *run.graph)
    if (node.kind() == ir::NodeKind::GetAttr)
      declareParameter(module, *run.graph->owner(), node.target());
  if (module.parameters().empty() && module.submodules().empty())
    return toString(run);
  module.addGraph(run.graph->clone(run.graph->name()));
  return ir::toString(module);
}

PassCallbacks dumpTo(const std::string &folder) {
  return {.before = {},
          .after = [folder](const PassRun &run, Changed) -> Status {
            if (auto error = llvm::sys::fs::create_directories(folder))
              return Status(Code::Failed, folder + ": cannot make the folder: " + error.message());
            std::string stem;
            llvm::raw_string_ostream(stem)
                << folder << '/' << llvm::format("%02u", run.position) << '-' << run.pass.data()
                << (run.graph ? "." + run.graph->name() : "");
            CGC_TRY(writeFile(stem + ".cgir", [&](auto &os) { os << standaloneText(run); }));
            if (!run.graph)
              return Status::ok();
            return writeFile(stem + ".dot", [&](auto &os) { ir::writeDot(os, *run.graph); });
          },
          .finish = {}};
}

PassCallbacks timePasses(llvm::raw_ostream &log) {
  using Clock = std::chrono::steady_clock;
  struct Row {
    std::string pass;
    unsigned runs = 0;
    Clock::duration total{};
  };
  struct State {
    std::vector<Row> rows; // In the order of first runs.
    Clock::time_point start;
  };
  auto state = std::make_shared<State>();
  return {.before = [state](const PassRun &) { state->start = Clock::now(); },
          .after =
              [state](const PassRun &run, Changed) {
                auto elapsed = Clock::now() - state->start;
                auto row = llvm::find_if(state->rows, [&](Row &r) { return r.pass == run.pass; });
                if (row == state->rows.end())
                  row = state->rows.insert(row, Row{std::string(run.pass)});
                ++row->runs;
                row->total += elapsed;
                return Status::ok();
              },
          .finish =
              [state, &log] {
                log << "    ms  runs  pass\n";
                for (const Row &row : state->rows)
                  log << llvm::format("%6.1f  %4u  %s\n",
                                      std::chrono::duration<double, std::milli>(row.total).count(),
                                      row.runs, row.pass.c_str());
              }};
}

Status broken(const PassRun &run, const std::string &how) {
  return Status(Code::Failed, "pass '" + std::string(run.pass) +
                                  "' broke the IR, which is a bug of that pass: " + how);
}

PassCallbacks verifyEach() {
  return {.before = {},
          .after = [](const PassRun &run, Changed) -> Status {
            ir::Diagnostics errors;
            bool valid =
                run.graph ? ir::verify(*run.graph, errors) : ir::verify(*run.module, errors);
            return valid ? Status::ok() : broken(run, errors.render());
          },
          .finish = {}};
}

#ifndef NDEBUG
/// The text before and after: it says whether the pass told the truth, and parses back to itself.
PassCallbacks checkText() {
  auto before = std::make_shared<std::string>();
  return {.before = [before](const PassRun &run) { *before = toString(run); },
          .after = [before](const PassRun &run, Changed changed) -> Status {
            std::string text = toString(run);
            if (changed == Changed::No && text != *before)
              return broken(run, "it changed the IR and says that it did not");
            ir::Diagnostics errors;
            auto parsed = ir::parseModule(text, run.pass, errors);
            if (!parsed)
              return broken(run, "its text cannot be parsed: " + errors.render());
            std::string again;
            if (run.module)
              again = ir::toString(*parsed);
            else if (auto *graph = parsed->findGraph(run.graph->name()))
              again = ir::toString(*graph);
            return text == again ? Status::ok() : broken(run, "its text does not round-trip");
          },
          .finish = {}};
}
#endif

} // namespace

std::string toString(const PassRun &run) {
  return run.graph ? ir::toString(*run.graph) : ir::toString(*run.module);
}

void Instrumentation::before(const PassRun &run) const {
  for (const PassCallbacks &callbacks : callbacks_)
    if (callbacks.before)
      callbacks.before(run);
}

Status Instrumentation::after(const PassRun &run, Changed changed) const {
  for (const PassCallbacks &callbacks : llvm::reverse(callbacks_))
    if (callbacks.after)
      CGC_TRY(callbacks.after(run, changed));
  return Status::ok();
}

void Instrumentation::finish() const {
  for (const PassCallbacks &callbacks : callbacks_)
    if (callbacks.finish)
      callbacks.finish();
}

Result<Instrumentation> makeInstrumentation(const InstrumentationOptions &options,
                                            llvm::raw_ostream &log,
                                            llvm::ArrayRef<RegisteredPass> more) {
  for (const std::string &name : options.printAfter)
    CGC_TRY(checkPassName(name, more));
  Instrumentation instrumentation;
#ifndef NDEBUG
  if (options.verifyEach)
    instrumentation.add(checkText());
#endif
  if (options.verifyEach)
    instrumentation.add(verifyEach());
  if (!options.dumpDir.empty())
    instrumentation.add(dumpTo(options.dumpDir));
  if (options.printAfterAll || !options.printAfter.empty())
    instrumentation.add(printAfter(options, log));
  if (options.timePasses)
    instrumentation.add(timePasses(log));
  return instrumentation;
}

} // namespace cgc::passes
