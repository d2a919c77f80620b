// Instrumentation: the standard callbacks.
#include "passes/manager/instrumentation.h"

#include "ir/text/text.h"
#include "ir/verifier.h"
#include "passes/manager/dump.h"
#include "passes/manager/pass_manager.h"
#include "passes/manager/reproducer.h"
#include "support/align.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Format.h"

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
  return {.after = [wanted, &log](const PassRun &run, Changed) {
    if (wanted(run.pass))
      log << "; after " << title(run) << "\n" << toString(run);
    return Status::ok();
  }};
}

/// Declares the parameter `path` of `from` in `to`, with the submodules on its path.
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

PassCallbacks printChanged(llvm::raw_ostream &log) {
  auto before = std::make_shared<std::string>();
  return {.before = [before](const PassRun &run) { *before = toString(run); },
          .after = [before, &log](const PassRun &run, Changed) -> Status {
            const std::string lines = diffLines(*before, toString(run));
            log << "; " << title(run) << (lines.empty() ? ": no change\n" : ":\n") << lines;
            return Status::ok();
          }};
}

PassCallbacks limitPasses(unsigned limit, llvm::raw_ostream &log) {
  auto runs = std::make_shared<unsigned>(0);
  return {.shouldRun = [runs, limit, &log](const PassRun &run) {
    const bool runsNow = ++*runs <= limit || run.isRequired;
    log << "pass run " << *runs << ": " << title(run)
        << (!runsNow        ? ", left out\n"
            : *runs > limit ? ", required\n"
                            : "\n");
    return runsNow;
  }};
}

PassCallbacks timePasses(llvm::raw_ostream &log) {
  using Clock = std::chrono::steady_clock;
  struct Row {
    std::string pass;
    unsigned runs = 0, changed = 0;
    Clock::duration total{};
  };
  struct State {
    std::vector<Row> rows;
    Clock::time_point start;
  };
  auto state = std::make_shared<State>();
  auto stop = [state](const PassRun &run, bool changed) {
    auto row = llvm::find_if(state->rows, [&](const Row &row) { return row.pass == run.pass; });
    if (row == state->rows.end())
      row = state->rows.insert(row, {.pass = std::string(run.pass)});
    ++row->runs;
    row->changed += changed;
    row->total += Clock::now() - state->start;
  };
  return {.before = [state](const PassRun &) { state->start = Clock::now(); },
          .after =
              [stop](const PassRun &run, Changed changed) {
                stop(run, changed == Changed::Yes);
                return Status::ok();
              },
          .finish =
              [state, &log] {
                auto ms = [](Clock::duration time) {
                  return std::chrono::duration<double, std::milli>(time).count();
                };
                Row all{.pass = "all"};
                for (const Row &row : state->rows) {
                  all.runs += row.runs;
                  all.changed += row.changed;
                  all.total += row.total;
                }
                // Slowest first; ties in the order in which they ran.
                llvm::stable_sort(state->rows,
                                  [](const Row &a, const Row &b) { return a.total > b.total; });
                state->rows.push_back(all);
                log << "        ms      %  runs  changed  pass\n";
                for (const Row &row : state->rows)
                  log << llvm::format("%10.1f  %5.1f  %4u  %7u  %s\n", ms(row.total),
                                      all.total.count() ? 100.0 * row.total / all.total : 0.0,
                                      row.runs, row.changed, row.pass.c_str());
              }};
}

/// Prints the match failures of the pass `name` below a line for each graph, and at the end their
/// number.
void printExplained(const std::string &name, llvm::raw_ostream &log,
                    Instrumentation &instrumentation) {
  auto count = std::make_shared<unsigned>(0);
  auto graph = std::make_shared<std::string>();
  instrumentation.explain(name, [=, &log](const MatchFailure &failure) {
    if (++*count == 1 || failure.graph != *graph)
      log << "; " << name << " on @" << failure.graph << "\n";
    *graph = failure.graph;
    log << toString(failure);
  });
  instrumentation.add({.finish = [count, name, &log] {
    log << name << ": " << *count << (*count == 1 ? " candidate does" : " candidates do")
        << " not match\n";
  }});
}

Status broken(const PassRun &run, const std::string &how) {
  return Status(Code::Failed, "pass '" + std::string(run.pass) +
                                  "' broke the IR, which is a bug of that pass: " + how);
}

PassCallbacks verifyEach() {
  return {.after = [](const PassRun &run, Changed) -> Status {
    ir::Diagnostics errors;
    bool valid = run.graph ? ir::verify(*run.graph, errors) : ir::verify(*run.module, errors);
    return valid ? Status::ok() : broken(run, errors.render());
  }};
}

#ifndef NDEBUG
/// Compares the text before and after: checks that the pass reported its change correctly, and that
/// the text round-trips.
PassCallbacks checkText() {
  auto before = std::make_shared<std::string>();
  return {.before = [before](const PassRun &run) { *before = toString(run); },
          .after = [before](const PassRun &run, Changed changed) -> Status {
            std::string text = toString(run);
            if (changed == Changed::No && text != *before)
              return broken(run, "it changed the IR and says that it did not");
            if (run.module) {
              const Status status = ir::checkRoundTrip(*run.module);
              return status.isOk() ? status : broken(run, status.message());
            }
            ir::Module alone("root", "");
            alone.addGraph(run.graph->clone(run.graph->name()));
            const Status status = ir::checkRoundTrip(alone);
            return status.isOk() ? status : broken(run, status.message());
          }};
}
#endif

} // namespace

std::string toString(const PassRun &run) {
  return run.graph ? ir::toString(*run.graph) : ir::toString(*run.module);
}

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

bool Instrumentation::shouldRun(const PassRun &run) const {
  return llvm::all_of(callbacks_, [&](const PassCallbacks &callbacks) {
    return !callbacks.shouldRun || callbacks.shouldRun(run);
  });
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

void Instrumentation::failed(const PassRun &run, const Status &status) const {
  for (const PassCallbacks &callbacks : callbacks_)
    if (callbacks.failed)
      callbacks.failed(run, status);
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
  if (!options.explain.empty())
    CGC_TRY(checkExplains(options.explain, more));
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
  if (options.printChanged)
    instrumentation.add(printChanged(log));
  if (options.passLimit)
    instrumentation.add(limitPasses(*options.passLimit, log));
  if (!options.crashReproducer.empty()) {
    CGC_ASSIGN_OR_RETURN(PassCallbacks reproducer,
                         writeReproducer(options.crashReproducer, options.origin));
    instrumentation.add(std::move(reproducer));
  }
  if (options.timePasses)
    instrumentation.add(timePasses(log));
  if (!options.explain.empty() && options.matchFailed)
    instrumentation.explain(options.explain, options.matchFailed);
  else if (!options.explain.empty())
    printExplained(options.explain, log, instrumentation);
  return instrumentation;
}

} // namespace cgc::passes
