// pack-linears: merges separate query, key and value projections into one linear.
#include "passes/canonicalize/run_patterns.h"
#include "passes/constants.h"
#include "passes/manager/registered_pass.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {
namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

/// Returns true if all users of `value`, followed through views, are attention ops.
bool feedsAttention(const Value *value, const ir::UseMap &uses) {
  return !uses.users(value).empty() && llvm::all_of(uses.users(value), [&](Node *user) {
    return user->is(OpKind::Attention) ||
           (isView(*user) && llvm::all_of(user->results(), [&](const Value &result) {
              return feedsAttention(&result, uses);
            }));
  });
}

bool isPart(const Node &node, const ir::UseMap &uses) {
  return node.is(OpKind::Linear) && node.arg("weight").value()->tensor().rank() == 2 &&
         isConstant(node.arg("weight").value()) &&
         (node.arg("bias").isNone() || isConstant(node.arg("bias").value())) &&
         feedsAttention(node.result(), uses);
}

/// Returns `value` reread before `root`, since its own get_attr may come later.
Value *rematerialize(Value *value, Node &root, ir::GraphRewriter &rewriter) {
  Node &node = *value->node();
  if (node.kind() == ir::NodeKind::GetAttr)
    return rewriter.getAttr(node.target(), value->type(), node, &root)->result();
  std::vector<Arg> args = node.args().vec();
  args[0] = rematerialize(args[0].value(), root, rewriter);
  return rewriter.create(node.op(), std::move(args), node, &root)->result(value->index());
}

bool packLinears(Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter) {
  if (!isPart(node, uses))
    return false;
  Value *input = node.arg("input").value();
  std::vector<Node *> parts;
  for (Node *user : uses.users(input))
    if (isPart(*user, uses) && user->arg("input") == Arg(input) &&
        user->arg("bias").isNone() == node.arg("bias").isNone())
      parts.push_back(user);
  if (parts.size() < 2 || parts.front() != &node)
    return false;
  int64_t total = 0;
  for (Node *part : parts)
    total += part->result()->tensor().sizes.back();
  for (Node *part : parts) {
    ir::TensorType slice = part->result()->tensor();
    ir::Dims packed = slice.sizes;
    packed.back() = total;
    slice.strides = ir::contiguousStrides(packed);
    if (!acceptsStrides(part->result(), slice))
      return false;
  }

  auto packed = [&](unsigned argument) {
    Arg::List list;
    for (Node *part : parts)
      list.emplace_back(rematerialize(part->arg(argument).value(), node, rewriter));
    return Arg(rewriter.create(OpKind::Cat, {std::move(list), 0}, node, &node)->result());
  };
  Arg weight = packed(1), bias = node.arg(2).isNone() ? Arg() : packed(2);
  Node *linear = rewriter.create(OpKind::Linear, {input, weight, bias}, node, &node);
  int64_t last = linear->result()->tensor().rank() - 1, begin = 0;
  for (Node *part : parts) {
    int64_t end = begin + part->result()->tensor().sizes.back();
    Node *slice =
        rewriter.create(OpKind::Slice, {linear->result(), last, begin, end, 1}, *part, &node);
    replaceAllUsesWith(rewriter, part->result(), slice->result());
    begin = end;
  }
  return true;
}

constexpr Pattern kPatterns[] = {packLinears, normalizeViews, dropIdentity};

} // namespace

/// Merges linears of one input, with constant weights and results that only attention uses, into
/// one linear by the concatenated weights, and slices.
struct PackLinearsPass {
  static constexpr const char *name = "pack-linears";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

Result<Changed> PackLinearsPass::run(ir::Graph &graph, PassContext &context) const {
  return runPatterns(graph, kPatterns, context);
}

CGC_DEFINE_PASS(PackLinearsPass)

} // namespace cgc::passes
