// PassManager: the table of passes, parsing and running.
#include "passes/pass_manager.h"

#include "ir/did_you_mean.h"
#include "passes/canonicalize.h"
#include "passes/cse.h"
#include "passes/dce.h"
#include "passes/fold.h"
#include "passes/inline.h"
#include "passes/module_substitution.h"
#include "passes/op_substitution.h"
#include "passes/precision.h"
#include "passes/select/select.h"
#include "passes/specialize.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <exception>

namespace cgc::passes {
namespace {

template <ModulePass P> Result<Changed> runModulePass(ir::Module &module, PassContext &context) {
  return P().run(module, context);
}
template <GraphPass P> Result<Changed> runGraphPass(ir::Graph &graph, PassContext &context) {
  return P().run(graph, context);
}

/// Those of passes.def, then `more`.
std::vector<RegisteredPass> allPasses(llvm::ArrayRef<RegisteredPass> more) {
#define CGC_MODULE_PASS(text, Type)                                                                \
  static_assert(std::string_view(text) == Type::name, "the row's name is not the pass's");
#define CGC_GRAPH_PASS(text, Type) CGC_MODULE_PASS(text, Type)
#include "passes/passes.def"
  std::vector<RegisteredPass> passes = {
#define CGC_MODULE_PASS(text, Type) {Type::name, &runModulePass<Type>, nullptr},
#define CGC_GRAPH_PASS(text, Type) {Type::name, nullptr, &runGraphPass<Type>},
#include "passes/passes.def"
  };
  passes.insert(passes.end(), more.begin(), more.end());
  return passes;
}

/// Runs one pass between its callbacks; an exception becomes a failure that names the pass.
Status runOne(const PassRun &run, const Instrumentation &instrumentation,
              llvm::function_ref<Result<Changed>()> pass) {
  instrumentation.before(run);
  auto named = [&](const Status &status) {
    return status.withContext("pass '" + std::string(run.pass) + "'");
  };
  try {
    Result<Changed> changed = pass();
    if (!changed) // Unsupported speaks of the model: the pass that found it does not matter.
      return changed.status().code() == Code::Unsupported ? changed.status()
                                                          : named(changed.status());
    return instrumentation.after(run, *changed);
  } catch (const std::bad_alloc &) {
    return named(Status(Code::OutOfMemory, "out of memory"));
  } catch (const std::exception &error) {
    return named(Status(Code::Failed, std::string("an exception: ") + error.what()));
  } catch (...) { // Of a plug-in's pass.
    return named(Status(Code::Failed, "an exception that is no std::exception"));
  }
}

} // namespace

Status checkPassName(llvm::StringRef name, llvm::ArrayRef<RegisteredPass> more) {
  const std::vector<RegisteredPass> passes = allPasses(more);
  llvm::SmallVector<llvm::StringRef> names;
  for (const RegisteredPass &pass : passes)
    names.push_back(pass.name);
  if (llvm::is_contained(names, name))
    return Status::ok();
  const std::string nearest = ir::didYouMean(name, names);
  return Status(Code::Usage,
                "there is no pass '" + name.str() + "'" +
                    (nearest.empty() ? "; the passes are " + llvm::join(names, ", ") : nearest));
}

Result<PassManager> PassManager::parse(llvm::StringRef pipeline,
                                       llvm::ArrayRef<RegisteredPass> more) {
  PassManager manager;
  if (pipeline.trim().empty())
    return manager;
  llvm::SmallVector<llvm::StringRef> names;
  pipeline.split(names, ',');
  const std::vector<RegisteredPass> passes = allPasses(more);
  for (llvm::StringRef name : names) {
    name = name.trim();
    CGC_TRY(checkPassName(name, more));
    const RegisteredPass &entry =
        *llvm::find_if(passes, [&](auto &pass) { return name == pass.name; });
    if (entry.onModule && !manager.entries_.empty() && manager.entries_.back().onGraph)
      return Status(Code::Usage, "pass '" + name.str() +
                                     "' works on the whole module: put it before '" +
                                     manager.entries_.back().name + "', which works on one graph");
    manager.entries_.push_back(entry);
  }
  return manager;
}

std::string PassManager::toString() const {
  return llvm::join(llvm::map_range(entries_, [](auto &e) { return e.name; }), ",");
}

Status PassManager::runModulePasses(ir::Module &module, PassContext &context,
                                    const Instrumentation &instrumentation) const {
  for (unsigned i = 0; i < entries_.size(); ++i)
    if (const auto &pass = entries_[i].onModule)
      CGC_TRY(runOne({entries_[i].name, i + 1, &module, nullptr}, instrumentation,
                     [&] { return pass(module, context); }));
  return Status::ok();
}

Status PassManager::runGraphPasses(ir::Graph &graph, PassContext &context,
                                   const Instrumentation &instrumentation) const {
  for (unsigned i = 0; i < entries_.size(); ++i)
    if (const auto &pass = entries_[i].onGraph)
      CGC_TRY(runOne({entries_[i].name, i + 1, nullptr, &graph}, instrumentation,
                     [&] { return pass(graph, context); }));
  return Status::ok();
}

} // namespace cgc::passes
