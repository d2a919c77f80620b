// ModuleSubstitutionPass: matching modules, and checking what a rewrite did.
#include "passes/module_substitution.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {
namespace {

/// `*` matches within one path component, `**` across components.
bool matchesGlob(llvm::StringRef glob, llvm::StringRef path) {
  if (glob.empty())
    return path.empty();
  if (glob.front() != '*')
    return !path.empty() && glob.front() == path.front() &&
           matchesGlob(glob.drop_front(), path.drop_front());
  bool across = glob.starts_with("**");
  llvm::StringRef rest = glob.drop_front(across ? 2 : 1);
  for (size_t taken = 0; taken <= path.size(); ++taken) {
    if (matchesGlob(rest, path.drop_front(taken)))
      return true;
    if (taken < path.size() && path[taken] == '.' && !across)
      return false;
  }
  return false;
}

bool matches(const ModuleSubstitution &substitution, const ir::Module &module) {
  if (!substitution.className.empty() && substitution.className != module.className())
    return false;
  if (!substitution.pathGlob.empty() && !matchesGlob(substitution.pathGlob, module.path()))
    return false;
  return llvm::all_of(substitution.attributes, [&](const ir::Attribute &wanted) {
    return llvm::any_of(module.attributes(), [&](const ir::Attribute &attribute) {
      return attribute.name == wanted.name && attribute.value == wanted.value;
    });
  });
}

struct Signature {
  std::string graph;
  size_t inputs = 0, outputs = 0;
};

Signature signatureOf(const ir::Graph &graph) {
  return {graph.name(), graph.inputs().size(), graph.output() ? graph.output()->args().size() : 0};
}

std::string toString(const Signature &signature) {
  return std::to_string(signature.inputs) + " inputs and " + std::to_string(signature.outputs) +
         " outputs";
}

Status apply(const ModuleSubstitution &substitution, ir::Module &module) {
  std::vector<Signature> before;
  for (auto &graph : module.graphs())
    before.push_back(signatureOf(*graph));
  std::string where = "substitution '" + substitution.name + "' on module '" + module.path() + "'";
  if (Status status = substitution.rewrite(module); !status.isOk())
    return status.withContext(where);
  for (const Signature &old : before) {
    const ir::Graph *graph = module.findGraph(old.graph);
    if (!graph)
      return Status(Code::Failed,
                    where + ": graph @" + old.graph + " is gone; its callers need it");
    Signature now = signatureOf(*graph);
    if (now.inputs != old.inputs || now.outputs != old.outputs)
      return Status(Code::Failed, where + ": graph @" + old.graph + " had " + toString(old) +
                                      " and now has " + toString(now) + "; keep the numbers");
  }
  return Status::ok();
}

Result<Changed> applyBelow(const ModuleSubstitution &substitution, ir::Module &module) {
  Changed changed = Changed::No;
  if (matches(substitution, module)) {
    CGC_TRY(apply(substitution, module));
    changed = Changed::Yes;
  }
  for (size_t i = 0; i < module.submodules().size(); ++i) { // A rewrite may add submodules.
    CGC_ASSIGN_OR_RETURN(Changed below, applyBelow(substitution, *module.submodules()[i]));
    if (below == Changed::Yes)
      changed = Changed::Yes;
  }
  return changed;
}

} // namespace

Result<Changed> ModuleSubstitutionPass::run(ir::Module &module, PassContext &context) const {
  Changed changed = Changed::No;
  if (context.substitutions)
    for (const ModuleSubstitution &substitution : context.substitutions->modules) {
      CGC_ASSIGN_OR_RETURN(Changed one, applyBelow(substitution, module));
      if (one == Changed::Yes)
        changed = Changed::Yes;
    }
  return changed;
}

} // namespace cgc::passes
