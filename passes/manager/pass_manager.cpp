// PassManager: the table of passes, parsing and running.
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

/// Splits at commas outside braces: `fold{limit=1},cse` gives `fold{limit=1}` and `cse`.
std::vector<llvm::StringRef> splitPasses(llvm::StringRef pipeline) {
  std::vector<llvm::StringRef> passes;
  size_t begin = 0, depth = 0;
  for (size_t i = 0; i < pipeline.size(); ++i) {
    depth += pipeline[i] == '{';
    depth -= pipeline[i] == '}' && depth > 0;
    if (pipeline[i] == ',' && depth == 0) {
      passes.push_back(pipeline.slice(begin, i).trim());
      begin = i + 1;
    }
  }
  passes.push_back(pipeline.drop_front(begin).trim());
  return passes;
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

Result<PassManager::Entry> PassManager::parsePass(llvm::StringRef text,
                                                  llvm::ArrayRef<RegisteredPass> passes) {
  auto [name, options] = text.split('{');
  name = name.rtrim();
  CGC_TRY(checkName(name, passes));
  if (text.contains('{') &&
      (!options.consume_back("}") || options.find_first_of("{}") != llvm::StringRef::npos))
    return Status(Code::Usage, "'" + text.str() +
                                   "': expected options in one pair of braces behind the pass's "
                                   "name, as in fold{limit=1024}");
  CGC_ASSIGN_OR_RETURN(PassOptions parsed, PassOptions::parse(name, options));
  Result<ConfiguredRun> run = llvm::find_if(passes, [&](const RegisteredPass &pass) {
                                return pass.name == name;
                              })->create(parsed);
  CGC_TRY(parsed.checkAllTaken()); // Reported first: a misspelt name is also a missing one.
  CGC_TRY(run.status());
  return Entry{name.str(), options.trim().str(), *std::move(run)};
}

Result<PassManager> PassManager::parse(llvm::StringRef pipeline,
                                       llvm::ArrayRef<RegisteredPass> more) {
  PassManager manager;
  if (pipeline.trim().empty())
    return manager;
  const std::vector<RegisteredPass> passes = allPasses(more);
  for (llvm::StringRef text : splitPasses(pipeline)) {
    if (text.empty())
      return Status(Code::Usage, "the pipeline '" + pipeline.str() +
                                     "' lacks a name between two commas, or at an end of it; "
                                     "write a pass there, or take a comma away");
    CGC_ASSIGN_OR_RETURN(Entry entry, parsePass(text, passes));
    if (entry.run.onModule && !manager.entries_.empty() && manager.entries_.back().run.onGraph)
      return Status(Code::Usage, "pass '" + entry.name +
                                     "' works on the whole module: put it before '" +
                                     manager.entries_.back().name + "', which works on one graph");
    manager.entries_.push_back(std::move(entry));
  }
  return manager;
}

std::string PassManager::toString(unsigned position) const {
  auto text = [](const Entry &entry) {
    return entry.options.empty() ? entry.name : entry.name + "{" + entry.options + "}";
  };
  return llvm::join(llvm::map_range(llvm::ArrayRef(entries_).drop_front(position - 1), text), ",");
}

std::optional<std::string> PassManager::option(llvm::StringRef pass, llvm::StringRef name) const {
  auto named = [&](const Entry &entry) { return entry.name == pass; };
  auto found = std::find_if(entries_.rbegin(), entries_.rend(), named);
  if (found == entries_.rend())
    return std::nullopt;
  Result<PassOptions> options = PassOptions::parse(pass, found->options);
  return options ? options->take(name) : std::nullopt;
}

bool PassManager::contains(llvm::StringRef pass) const {
  return llvm::any_of(entries_, [&](const Entry &entry) { return entry.name == pass; });
}

Status PassManager::stopAfter(llvm::StringRef passOrPosition) {
  size_t position = 0;
  passOrPosition.getAsInteger(10, position);
  std::vector<llvm::StringRef> names;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (i + 1 == position || entries_[i].name == passOrPosition) {
      entries_.resize(i + 1);
      return Status::ok();
    }
    names.push_back(entries_[i].name);
  }
  if (entries_.empty())
    return Status(Code::Usage, "nothing can stop after '" + passOrPosition.str() +
                                   "': the pipeline has no passes; name them with --passes");
  return Status(Code::Usage, "'" + passOrPosition.str() + "' is not in the pipeline " + toString() +
                                 didYouMean(passOrPosition, names));
}

Status PassManager::runModulePasses(ir::Module &module, PassContext &context,
                                    const Instrumentation &instrumentation) const {
  for (unsigned i = 0; i < entries_.size(); ++i)
    if (const Entry &entry = entries_[i]; entry.run.onModule)
      CGC_TRY(runOne({.pass = entry.name,
                      .position = i + 1,
                      .isRequired = entry.run.isRequired,
                      .manager = this,
                      .module = &module},
                     instrumentation, [&] { return entry.run.onModule(module, context); }));
  return Status::ok();
}

Status PassManager::runGraphPasses(ir::Graph &graph, PassContext &context,
                                   const Instrumentation &instrumentation) const {
  for (unsigned i = 0; i < entries_.size(); ++i)
    if (const Entry &entry = entries_[i]; entry.run.onGraph) {
      context.matchFailed = instrumentation.listenerTo(entry.name);
      CGC_TRY(runOne({.pass = entry.name,
                      .position = i + 1,
                      .isRequired = entry.run.isRequired,
                      .manager = this,
                      .graph = &graph},
                     instrumentation, [&] { return entry.run.onGraph(graph, context); }));
    }
  return Status::ok();
}

} // namespace cgc::passes
