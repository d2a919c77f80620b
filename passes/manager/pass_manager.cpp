// PassManager: the table of passes, configuring and running them.
#include "passes/manager/pass_manager.h"

#include "support/did_you_mean.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <exception>

namespace cgc::passes {

// Each is defined by CGC_DEFINE_PASS in the source file of the pass.
#define CGC_PASS(Type) RegisteredPass registered##Type();
#include "passes/passes.def"

namespace {

Status checkName(llvm::StringRef name, llvm::ArrayRef<RegisteredPass> passes) {
  llvm::SmallVector<llvm::StringRef> names;
  for (const RegisteredPass &pass : passes)
    names.push_back(pass.name);
  if (llvm::is_contained(names, name))
    return Status::ok();
  const std::string nearest = didYouMean(name, names);
  return Status(Code::Usage,
                "there is no pass '" + name.str() + "'" +
                    (nearest.empty() ? "; the passes are " + llvm::join(names, ", ") : nearest));
}

/// Runs one pass between its callbacks. An exception becomes a failure that names the pass.
Status runOne(const PassRun &run, const Instrumentation &instrumentation,
              llvm::function_ref<Result<Changed>()> pass) {
  if (!instrumentation.shouldRun(run))
    return Status::ok();
  instrumentation.before(run);
  auto failed = [&](Status status) {
    // Unsupported concerns the model, whichever pass found it.
    if (status.code() != Code::Unsupported)
      status = status.withContext("pass '" + std::string(run.pass) + "'");
    instrumentation.failed(run, status);
    return status;
  };
  try {
    const Result<Changed> changed = pass();
    if (!changed)
      return failed(changed.status());
    const Status status = instrumentation.after(run, *changed);
    if (!status.isOk())
      instrumentation.failed(run, status);
    return status;
  } catch (const std::bad_alloc &) {
    return failed(Status(Code::OutOfMemory, "out of memory"));
  } catch (const std::exception &error) {
    return failed(Status(Code::Failed, std::string("an exception: ") + error.what()));
  } catch (...) { // Thrown by a plug-in's pass.
    return failed(Status(Code::Failed, "an exception that is no std::exception"));
  }
}

/// The run of a pass with its options.
Result<ConfiguredRun> configure(const PassEntry &entry, llvm::ArrayRef<RegisteredPass> passes) {
  CGC_TRY(checkName(entry.pass, passes));
  PassOptions options(entry.pass, entry.options);
  Result<ConfiguredRun> run = llvm::find_if(passes, [&](const RegisteredPass &pass) {
                                return pass.name == entry.pass;
                              })->create(options);
  CGC_TRY(options.checkAllTaken()); // Reported first: a misspelt name is also a missing one.
  return run;
}

} // namespace

std::vector<RegisteredPass> allPasses(llvm::ArrayRef<RegisteredPass> more) {
  std::vector<RegisteredPass> passes = {
#define CGC_PASS(Type) registered##Type(),
#include "passes/passes.def"
  };
  passes.insert(passes.end(), more.begin(), more.end());
  return passes;
}

Status checkPassName(llvm::StringRef name, llvm::ArrayRef<RegisteredPass> more) {
  return checkName(name, allPasses(more));
}

Status checkExplains(llvm::StringRef name, llvm::ArrayRef<RegisteredPass> more) {
  const std::vector<RegisteredPass> passes = allPasses(more);
  CGC_TRY(checkName(name, passes));
  std::vector<std::string> explaining;
  for (const RegisteredPass &pass : passes)
    if (pass.explains)
      explaining.push_back(pass.name);
  if (llvm::is_contained(explaining, name))
    return Status::ok();
  return Status(Code::Usage, "pass '" + name.str() + "' has no patterns to explain; these have: " +
                                 llvm::join(explaining, ", "));
}

Result<PassManager> PassManager::create(PassList passes, llvm::ArrayRef<RegisteredPass> more) {
  PassManager manager;
  manager.passes_ = std::move(passes);
  const std::vector<RegisteredPass> known = allPasses(more);
  for (size_t i = 0; i < manager.passes_.size(); ++i) {
    CGC_ASSIGN_OR_RETURN(ConfiguredRun run, configure(manager.passes_[i], known));
    if (run.onModule && i > 0 && manager.runs_.back().onGraph)
      return Status(Code::Usage, "pass '" + manager.passes_[i].pass +
                                     "' works on the whole module: put it before '" +
                                     manager.passes_[i - 1].pass + "', which works on one graph");
    manager.runs_.push_back(std::move(run));
  }
  return manager;
}

Result<PassManager> PassManager::parse(llvm::StringRef text, llvm::ArrayRef<RegisteredPass> more) {
  CGC_ASSIGN_OR_RETURN(PassList passes, parsePassList(text));
  return create(std::move(passes), more);
}

std::string PassManager::toString(unsigned position) const {
  return passes::toString(llvm::ArrayRef(passes_).drop_front(position - 1));
}

std::optional<std::string> PassManager::option(llvm::StringRef pass, llvm::StringRef name) const {
  for (const PassEntry &entry : llvm::reverse(passes_))
    if (entry.pass == pass)
      return PassOptions(pass, entry.options).take(name);
  return std::nullopt;
}

bool PassManager::contains(llvm::StringRef pass) const {
  return llvm::any_of(passes_, [&](const PassEntry &entry) { return entry.pass == pass; });
}

Status PassManager::stopAfter(llvm::StringRef passOrPosition) {
  size_t position = 0;
  passOrPosition.getAsInteger(10, position);
  std::vector<llvm::StringRef> names;
  for (size_t i = 0; i < passes_.size(); ++i) {
    if (i + 1 == position || passes_[i].pass == passOrPosition) {
      passes_.resize(i + 1);
      runs_.resize(i + 1);
      return Status::ok();
    }
    names.push_back(passes_[i].pass);
  }
  if (passes_.empty())
    return Status(Code::Usage, "nothing can stop after '" + passOrPosition.str() +
                                   "': the pipeline has no passes; name them with --passes");
  return Status(Code::Usage, "'" + passOrPosition.str() + "' is not in the pipeline " + toString() +
                                 didYouMean(passOrPosition, names));
}

Status PassManager::runModulePasses(ir::Module &module, PassContext &context,
                                    const Instrumentation &instrumentation) const {
  for (unsigned i = 0; i < passes_.size(); ++i)
    if (runs_[i].onModule)
      CGC_TRY(runOne({.pass = passes_[i].pass,
                      .position = i + 1,
                      .isRequired = runs_[i].isRequired,
                      .manager = this,
                      .module = &module},
                     instrumentation, [&] { return runs_[i].onModule(module, context); }));
  return Status::ok();
}

Status PassManager::runGraphPasses(ir::Graph &graph, PassContext &context,
                                   const Instrumentation &instrumentation) const {
  for (unsigned i = 0; i < passes_.size(); ++i)
    if (runs_[i].onGraph) {
      context.matchFailed = instrumentation.listenerTo(passes_[i].pass);
      CGC_TRY(runOne({.pass = passes_[i].pass,
                      .position = i + 1,
                      .isRequired = runs_[i].isRequired,
                      .manager = this,
                      .graph = &graph},
                     instrumentation, [&] { return runs_[i].onGraph(graph, context); }));
    }
  return Status::ok();
}

} // namespace cgc::passes
