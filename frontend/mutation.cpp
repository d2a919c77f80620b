// GraphImporter: mutation of lists and dicts.
#include "frontend/graph_import.h"
#include "ir/op_def.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

namespace cgc::frontend {

namespace prim = c10::prim;
using ir::Arg;
using ir::OpKind;
using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;

namespace {

/// Returns the op that computes the list or dict after its mutation by `node`.
std::optional<OpKind> mutationOf(const Node &node) {
  const c10::FunctionSchema *schema = node.maybeSchema();
  if (schema && schema->name() == "aten::add_" && schema->overload_name() == "t")
    return OpKind::PrimConcat;
  return llvm::StringSwitch<std::optional<OpKind>>(node.kind().toQualString())
      .Case("aten::append", OpKind::PrimAppend)
      .Case("aten::extend", OpKind::PrimConcat)
      .Case("aten::_set_item", OpKind::PrimSetItem)
      .Default(std::nullopt);
}

/// Returns true if `use` stores the value in an object that may be read later, or passes it on.
bool stores(const torch::jit::Use &use) {
  if (mutationOf(*use.user))
    return use.offset > 0;
  switch (use.user->kind()) {
  case prim::ListConstruct:
  case prim::TupleConstruct:
  case prim::DictConstruct:
  case prim::CallFunction:
  case prim::CallMethod:
  case prim::SetAttr:
  case prim::Loop:
    return true;
  case prim::Return: // The return of a block: an output of the enclosing node.
    return use.user->owningBlock()->owningNode() != nullptr;
  default:
    return false;
  }
}

/// Returns true if `list` may have an alias when `mutation` changes it: the change would have to be
/// visible through the alias too.
bool mayHaveOtherName(const Value &list, const Node &mutation) {
  const c10::Symbol source = list.node()->kind();
  if (source != prim::ListConstruct && source != prim::DictConstruct && source != c10::aten::list)
    return true;
  const Node *loop = nullptr; // The outermost loop around the mutation but not around the list.
  for (const Block *block = mutation.owningBlock(); block != list.node()->owningBlock();
       block = block->owningNode()->owningBlock())
    if (block->owningNode()->kind() == prim::Loop)
      loop = block->owningNode();
  return llvm::any_of(list.uses(), [&](const torch::jit::Use &use) {
    if (!stores(use))
      return false;
    const Node *user =
        use.user->kind() == prim::Return ? use.user->owningBlock()->owningNode() : use.user;
    return user->isBefore(&mutation) || (loop && !loop->isBefore(user) && !user->isBefore(loop));
  });
}

} // namespace

bool GraphImporter::importMutation(const Node &node) {
  const std::optional<OpKind> op = mutationOf(node);
  if (!op)
    return false;
  const Value *list = node.inputs()[0];
  if (mayHaveOtherName(*list, node)) {
    refuse(node, "a list or dict is changed that may have another name; change it where it is "
                 "made, or make a new one");
    return true;
  }
  std::vector<Arg> args = argsOf(node.inputs());
  Arg changed;
  if (std::optional<Arg> value = ir::evaluateEarly(*op, args))
    changed = std::move(*value);
  else
    changed = graph_.call(*op, std::move(args), 1, locOf(node))->result();
  args_[list] = changed;
  mutated_.push_back(list);
  for (const Value *output : node.outputs())
    args_[output] = changed;
  return true;
}

} // namespace cgc::frontend
