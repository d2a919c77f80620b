// ModuleSubstitutionPass: matches modules, replaces them, and keeps the originals for comparison.
#include "passes/substitution/module_substitution.h"

#include "ir/text/text.h"
#include "passes/manager/registered_pass.h"
#include "passes/path_glob.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {
namespace {

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
  size_t inputs = 0, outputs = 0;
  bool operator==(const Signature &) const = default;
};

Signature signatureOf(const ir::Graph &graph) {
  return {graph.inputs().size(), graph.output() ? graph.outputs().size() : 0};
}

std::string toString(const Signature &signature) {
  return std::to_string(signature.inputs) + " inputs and " + std::to_string(signature.outputs) +
         " outputs";
}

/// Ends the branch begun by prim.if(name), which holds the original that the substitution `name`
/// replaced. Returns a check for each of `replacements`, to be used in its place, and the
/// prim.end_if, whose first list the caller sets to the original's outputs.
struct OriginalEnd {
  ir::Node *end;
  std::vector<ir::Value *> checks;
};
OriginalEnd endOriginal(ir::Graph &graph, llvm::ArrayRef<ir::Arg> replacements,
                        const std::string &name, const ir::Loc &loc, ir::Node *before) {
  const ir::Arg::List none(replacements.size(), ir::Arg());
  graph.call(ir::OpKind::PrimElse, {}, 0, loc, before);
  OriginalEnd result{graph.call(ir::OpKind::PrimEndIf, {ir::Arg(none), ir::Arg(none)},
                                static_cast<unsigned>(none.size()), loc, before),
                     {}};
  for (auto [replacement, original] : llvm::zip(replacements, result.end->results()))
    result.checks.push_back(graph
                                .call(ir::OpKind::PrimSubstituted,
                                      {replacement, ir::Arg(&original), name}, 1, loc, before)
                                ->result());
  return result;
}

/// Appends the nodes of `original` to `graph`, which has the same inputs, so that `specialize` can
/// compare the outputs of both.
void addCheck(ir::Graph &graph, const ir::Graph &original, const std::string &name) {
  llvm::DenseMap<const ir::Value *, ir::Arg> map; // Looked up, never iterated.
  std::vector<ir::Value *> inputs = graph.inputs();
  for (auto [i, input] : llvm::enumerate(original.inputs()))
    map[input] = ir::Arg(inputs[i]);
  ir::Node *output = graph.output();
  graph.call(ir::OpKind::PrimIf, {name}, 0, output->loc(), output);
  for (const ir::Node &node : original) {
    std::vector<ir::Arg> args = node.args().vec();
    for (ir::Arg &arg : args)
      arg.mapValues([&](ir::Value *value) { return map.find(value)->second; });
    ir::Node *copy = nullptr;
    switch (node.kind()) {
    case ir::NodeKind::Placeholder:
      continue;
    case ir::NodeKind::GetAttr:
      copy = graph.getAttr(node.target(), node.result()->type(), node.loc(), output);
      break;
    case ir::NodeKind::CallFunction:
      copy = graph.call(node.op(), std::move(args), node.numResults(), node.loc(), output);
      copy->setTarget(node.target());
      copy->setInPlace(node.isInPlace());
      break;
    case ir::NodeKind::CallModule:
      copy =
          graph.callModule(node.target(), std::move(args), node.numResults(), node.loc(), output);
      break;
    case ir::NodeKind::Output: {
      OriginalEnd ended = endOriginal(graph, output->args(), name, node.loc(), output);
      ended.end->setArg("then", ir::Arg(std::move(args)));
      output->setArgs({ended.checks.begin(), ended.checks.end()});
      return;
    }
    }
    for (unsigned i = 0; i < node.numResults(); ++i) {
      copy->result(i)->setType(node.result(i)->type());
      map[node.result(i)] = ir::Arg(copy->result(i));
    }
  }
}

Status replaceBody(const ModuleSubstitution &substitution, ir::Module &module) {
  std::vector<std::unique_ptr<ir::Graph>> originals;
  for (auto &graph : module.graphs())
    originals.push_back(graph->clone(graph->name()));
  CGC_TRY(substitution.replaceBody(module));
  for (auto &original : originals) {
    ir::Graph *graph = module.findGraph(original->name());
    if (!graph)
      return Status(Code::Failed, "graph @" + original->name() + " is gone; its callers need it");
    Signature before = signatureOf(*original), now = signatureOf(*graph);
    if (now != before)
      return Status(Code::Failed, "graph @" + original->name() + " had " + toString(before) +
                                      " and now has " + toString(now) + "; keep the numbers");
    if (ir::toString(*graph) != ir::toString(*original))
      addCheck(*graph, *original, substitution.name);
  }
  return Status::ok();
}

Status replaceCall(const ModuleSubstitution &substitution, ir::Node &call, ir::Module &module) {
  ir::Graph &graph = *call.graph();
  CGC_ASSIGN_OR_RETURN(auto values, substitution.replaceCall(call, module));
  if (values.size() != call.numResults() || llvm::is_contained(values, nullptr))
    return Status(Code::Failed,
                  "the call has " + std::to_string(call.numResults()) +
                      " results, and the replacement gives " +
                      std::to_string(llvm::count_if(values, [](auto *v) { return v != nullptr; })));
  ir::Node *next = &*std::next(call.getIterator());
  graph.call(ir::OpKind::PrimIf, {substitution.name}, 0, call.loc(), &call);
  const std::vector<ir::Arg> replacements(values.begin(), values.end());
  OriginalEnd ended = endOriginal(graph, replacements, substitution.name, call.loc(), next);
  ir::Arg::List results;
  for (unsigned i = 0; i < values.size(); ++i) {
    graph.replaceAllUsesWith(call.result(i), ended.checks[i]);
    results.emplace_back(call.result(i));
  }
  ended.end->setArg("then", ir::Arg(std::move(results)));
  return Status::ok();
}

/// The matches of a substitution. All are found before the first is replaced, so that the
/// substitution does not match the modules that its replacements add.
struct Matches {
  std::vector<ir::Module *> modules;
  std::vector<std::pair<ir::Node *, ir::Module *>> calls; ///< Each call with the called module.
};

void findBelow(const ModuleSubstitution &substitution, ir::Module &module, Matches &found) {
  if (matches(substitution, module))
    found.modules.push_back(&module);
  for (auto &graph : module.graphs())
    for (ir::Node &node : *graph)
      if (node.kind() == ir::NodeKind::CallModule)
        if (ir::Module *callee = module.resolve(node.target()).first;
            callee && matches(substitution, *callee))
          found.calls.emplace_back(&node, callee);
  for (auto &submodule : module.submodules())
    findBelow(substitution, *submodule, found);
}

Result<Changed> apply(const ModuleSubstitution &substitution, ir::Module &root) {
  Matches found;
  findBelow(substitution, root, found);
  if (substitution.replaceBody) {
    for (ir::Module *module : found.modules)
      if (Status status = replaceBody(substitution, *module); !status.isOk())
        return status.withContext("substitution '" + substitution.name + "' on module '" +
                                  module->path() + "'");
    return found.modules.empty() ? Changed::No : Changed::Yes;
  }
  for (auto [call, callee] : found.calls)
    if (Status status = replaceCall(substitution, *call, *callee); !status.isOk())
      return status.withContext("substitution '" + substitution.name + "' at " +
                                ir::toString(*call));
  return found.calls.empty() ? Changed::No : Changed::Yes;
}

} // namespace

Result<Changed> ModuleSubstitutionPass::run(ir::Module &module, PassContext &context) const {
  Changed changed = Changed::No;
  if (context.substitutions)
    for (const ModuleSubstitution &substitution : context.substitutions->modules) {
      CGC_ASSIGN_OR_RETURN(Changed one, apply(substitution, module));
      if (one == Changed::Yes)
        changed = Changed::Yes;
    }
  return changed;
}

CGC_DEFINE_PASS(ModuleSubstitutionPass)

} // namespace cgc::passes
