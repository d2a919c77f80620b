// HostCallsPass: one walk over the calls of every module.
#include "passes/specialize/host_calls.h"

#include "ir/op_views.h"
#include "passes/manager/registered_pass.h"
#include "passes/path_glob.h"
#include "support/did_you_mean.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

namespace cgc::passes {
namespace {

class Replacer {
public:
  explicit Replacer(llvm::StringRef glob) : glob_(glob) {}

  void visit(ir::Module &module) {
    for (auto &graph : module.graphs())
      for (ir::Node &node : llvm::make_early_inc_range(*graph)) {
        if (auto call = ir::CgcHostCallOp::of(node))
          matches_ |= matchesGlob(glob_, call->module());
        if (node.kind() == ir::NodeKind::CallModule)
          visitCall(module, *graph, node);
      }
    for (auto &submodule : module.submodules())
      visit(*submodule);
  }

  /// Whether a call matches, one that an earlier run of the pass replaced included.
  bool matches() const { return matches_; }
  bool changed() const { return changed_; }
  /// The paths of the modules that are called.
  const std::set<std::string> &paths() const { return paths_; }

private:
  void visitCall(ir::Module &module, ir::Graph &graph, ir::Node &node) {
    const auto [callee, method] = module.resolve(node.target());
    if (!callee || callee->path().empty()) // A method of the model itself has no path.
      return;
    paths_.insert(callee->path());
    if (!matchesGlob(glob_, callee->path()))
      return;
    ir::Arg::List args(node.args().begin(), node.args().end());
    if (const ir::Graph *body = callee->findGraph(method))
      while (!args.empty() && isDefault(args.back(), *body, args.size() - 1))
        args.pop_back();
    ir::Node *call =
        graph.call(ir::OpKind::CgcHostCall,
                   {ir::Arg(ir::Arg::List{}), ir::Arg(callee->path()), ir::Arg(std::string(method)),
                    ir::Arg(ir::Arg::List{}), ir::Arg(ir::Arg::List{}), ir::Arg(std::move(args))},
                   node.numResults(), node.loc(), &node);
    for (unsigned i = 0; i < node.numResults(); ++i)
      graph.replaceAllUsesWith(node.result(i), call->result(i));
    graph.erase(&node);
    matches_ = changed_ = true;
  }

  static bool isDefault(const ir::Arg &arg, const ir::Graph &body, size_t position) {
    const std::vector<ir::Value *> inputs = body.inputs();
    const ir::Arg *value =
        position < inputs.size() ? inputs[position]->node()->defaultValue() : nullptr;
    return value && arg.isConstant() && arg == *value;
  }

  llvm::StringRef glob_;
  bool matches_ = false, changed_ = false;
  std::set<std::string> paths_;
};

} // namespace

Result<HostCallsPass> HostCallsPass::create(PassOptions &options) {
  const auto glob = options.take("module");
  if (!glob || glob->empty())
    return Status(Code::Usage, "pass 'host-calls' needs the path of a module or a glob, as in "
                               "host-calls{module=visual.adapter}");
  return HostCallsPass{.glob = *glob};
}

Result<Changed> HostCallsPass::run(ir::Module &module, PassContext &) const {
  Replacer replacer(glob);
  replacer.visit(module);
  if (!replacer.matches()) {
    const std::vector<llvm::StringRef> paths(replacer.paths().begin(), replacer.paths().end());
    const std::string near = didYouMean(glob, paths);
    const std::string calls = paths.empty() ? "; the model calls no submodules"
                                            : "; the model calls " + std::to_string(paths.size()) +
                                                  " modules, the first is '" + paths[0].str() + "'";
    return Status(Code::Usage, "no module that is called matches '" + glob + "'" +
                                   (near.empty() ? calls : near));
  }
  return replacer.changed() ? Changed::Yes : Changed::No;
}

CGC_DEFINE_PASS(HostCallsPass)

} // namespace cgc::passes
