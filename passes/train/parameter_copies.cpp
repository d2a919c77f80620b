// ParameterCopies: finds casts of parameters, replaces them, and makes the graph that refreshes the
// copies.
#include "passes/train/parameter_copies.h"

#include "passes/match.h"
#include "runtime/base/training_names.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {
namespace {

using ir::Node;
using ir::Value;

/// The copies that there can be.
constexpr DType kCopyTypes[] = {DType::BF16, DType::F16};

/// Whether `node` casts f32 to 16 bits, and a view of the copy has the same layout.
bool isReplaceable(const Node &node) {
  const auto cast = ir::ToOp::of(node);
  if (!cast || !llvm::is_contained(kCopyTypes, node.result()->tensor().dtype) ||
      cast->self()->tensor().dtype != DType::F32)
    return false;
  ir::TensorType view = cast->self()->tensor();
  view.dtype = node.result()->tensor().dtype;
  return sameLayout(view, node.result()->tensor());
}

/// Adds the replaceable casts of `value` and of views of it.
void addCasts(const Value *value, llvm::SmallVectorImpl<Node *> &casts) {
  for (Node *user : value->users())
    if (isReplaceable(*user))
      casts.push_back(user);
    else if (isView(*user) && ir::aliasedArg(*user).value() == value)
      addCasts(user->result(), casts);
}

llvm::SmallVector<Node *> castsOf(const ir::Graph &graph, llvm::StringRef path) {
  llvm::SmallVector<Node *> casts;
  for (const Node &node : graph)
    if (node.kind() == ir::NodeKind::GetAttr && node.target() == path)
      addCasts(node.result(), casts);
  return casts;
}

/// `value`, a read of a parameter or a view of one, as one of its copy. Adds it before `before`.
Value *inCopy(Value *value, const std::string &copy, DType dtype, Node &before,
              ir::GraphRewriter &rewriter) {
  const Node &node = *value->node();
  if (node.kind() == ir::NodeKind::GetAttr) {
    ir::TensorType type = value->tensor();
    type.dtype = dtype;
    return rewriter.getAttr(copy, std::move(type), node, &before)->result();
  }
  std::vector<ir::Arg> args = node.args();
  args[0] = inCopy(ir::aliasedArg(node).value(), copy, dtype, before, rewriter);
  return rewriter.create(node.op(), std::move(args), node, &before)->result();
}

/// Calls `f(path of a parameter, its copy)` for all copies of `module`, whose path is `prefix`.
template <class F> void forCopies(const ir::Module &module, const std::string &prefix, F f) {
  for (const ir::Parameter &parameter : module.parameters())
    if (parameter.kind == ir::Parameter::Kind::State && parameter.role == StateRole::Copy)
      f(prefix + llvm::StringRef(parameter.name).rsplit(':').first.str(), parameter);
  for (const auto &submodule : module.submodules())
    forCopies(*submodule, prefix + submodule->name() + ".", f);
}

} // namespace

std::string copyName(llvm::StringRef path, DType dtype) {
  return path.str() + ":" + std::string(dtypeName(dtype));
}

std::optional<DType> chooseCopy(const ir::Graph &graph, llvm::StringRef path, bool isFirst) {
  if (isFirst) {
    const auto casts = castsOf(graph, path);
    return casts.empty() ? std::nullopt : std::optional(casts.front()->result()->tensor().dtype);
  }
  for (const DType dtype : kCopyTypes)
    if (graph.owner()->findParameter(copyName(path, dtype)))
      return dtype;
  return std::nullopt;
}

void readCopy(ir::Graph &graph, llvm::StringRef path, DType dtype) {
  ir::GraphRewriter rewriter(graph);
  const std::string name = copyName(path, dtype);
  const auto [module, parameter] = graph.owner()->resolve(path);
  const std::string own = copyName(parameter, dtype);
  if (!module->findParameter(own))
    module->addParameter(
        {own, ir::Parameter::Kind::State,
         ir::TensorType::dense(dtype, module->findParameter(parameter)->type.sizes), nullptr,
         StateRole::Copy});
  for (Node *cast : castsOf(graph, path))
    if (cast->result()->tensor().dtype == dtype)
      rewriter.replace(cast, inCopy(ir::ToOp::of(*cast)->self(), name, dtype, *cast, rewriter));
}

std::unique_ptr<ir::Graph> refreshCopies(ir::Module &root, DeviceKind device) {
  const auto typeOf = [&](const ir::Parameter &state) {
    ir::TensorType type = state.type;
    type.device = device;
    return type;
  };
  auto graph = std::make_unique<ir::Graph>(kRefreshEntry);
  graph->setOwner(&root);
  std::vector<std::pair<std::string, Value *>> copies;
  forCopies(root, "", [&](const std::string &path, const ir::Parameter &copy) {
    const DType dtype = copy.type.dtype;
    Value *parameter =
        graph->getAttr(path, typeOf(*root.findParameter(path)), ir::Loc::unknown())->result();
    Node *cast = graph->call(ir::OpKind::To, {parameter, dtype, ir::Arg()}, 1, ir::Loc::unknown());
    cast->result()->setType(typeOf(copy));
    copies.emplace_back(copyName(path, dtype), cast->result());
  });
  if (copies.empty())
    return nullptr;
  Value *step =
      graph->getAttr(kStepState, typeOf(*root.findParameter(kStepState)), ir::Loc::unknown())
          ->result();
  graph->createOutput({step}, ir::Loc::unknown());
  graph->setOutputNames({"step"});
  for (const auto &[name, value] : copies)
    graph->addStateWrite(name, value);
  return graph;
}

} // namespace cgc::passes
