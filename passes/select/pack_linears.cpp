// pack-linears: merges separate query, key and value projections into one linear.
#include "passes/canonicalize/patterns.h"
#include "passes/constants.h"
#include "passes/manager/registered_pass.h"
#include "passes/run_patterns.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {
namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

/// Returns true if all users of `value`, followed through views, are attention ops.
bool feedsAttention(const Value *value) {
  return value->hasUsers() && llvm::all_of(value->users(), [](const Node *user) {
           return user->is(OpKind::ScaledDotProductAttention) ||
                  (isView(*user) && llvm::all_of(user->results(), [](const Value &result) {
                     return feedsAttention(&result);
                   }));
         });
}

/// Returns why a linear whose result feeds attention cannot be a part; null if it can.
const char *whyNoPart(ir::LinearOp linear) {
  if (linear.weight()->tensor().rank() != 2)
    return "the weight is a vector";
  if (!isConstant(linear.weight()))
    return "the weight is not a parameter";
  if (linear.bias() && !isConstant(linear.bias()))
    return "the bias is not a parameter";
  return nullptr;
}

/// Returns the linears that one linear of `input` can replace, in graph order.
std::vector<ir::LinearOp> partsOf(Value *input, bool hasBias) {
  std::vector<ir::LinearOp> parts;
  for (const Node *user : input->users())
    if (auto linear = ir::LinearOp::of(*user);
        linear && linear->input() == input && (linear->bias() != nullptr) == hasBias &&
        feedsAttention(linear->result()) && !whyNoPart(*linear))
      parts.push_back(*linear);
  return parts;
}

/// Returns `value` reread before `root`, since its own get_attr may come later.
Value *rematerialize(Value *value, Node &root, ir::GraphRewriter &rewriter) {
  Node &node = *value->node();
  if (node.kind() == ir::NodeKind::GetAttr)
    return rewriter.getAttr(node.target(), value->type(), node, &root)->result();
  std::vector<Arg> args = node.args().vec();
  args.front() = rematerialize(ir::aliasedArg(node).value(), root, rewriter);
  return rewriter.create(node.op(), std::move(args), node, &root)->result(value->index());
}

bool packLinears(Node &node, PatternRewriter &rewriter) {
  auto linear = ir::LinearOp::of(node);
  if (!linear || !feedsAttention(node.result()))
    return false;
  if (const char *reason = whyNoPart(*linear))
    return rewriter.notifyMatchFailure(node, reason);
  const bool hasBias = linear->bias() != nullptr;
  const std::vector<ir::LinearOp> parts = partsOf(linear->input(), hasBias);
  if (parts.size() < 2)
    return rewriter.notifyMatchFailure(
        node, "no other linear that feeds attention reads the same input and has " +
                  llvm::Twine(hasBias ? "a bias" : "no bias") + " too");
  if (&parts.front().node() != &node)
    return false;
  int64_t total = 0;
  for (ir::LinearOp part : parts)
    total += part.result()->tensor().sizes.back();
  for (ir::LinearOp part : parts) {
    ir::TensorType slice = part.result()->tensor();
    ir::Dims packed = slice.sizes;
    packed.back() = total;
    slice.strides = ir::contiguousStrides(packed);
    if (const Node *reader = findStridesRefused(part.result(), slice))
      return rewriter.notifyMatchFailure(node, [&] { return stridesRefused(*reader, slice); });
  }

  auto packed = [&](Value *(ir::LinearOp::*argument)() const) {
    Arg::List list;
    for (ir::LinearOp part : parts)
      list.emplace_back(rematerialize((part.*argument)(), node, rewriter));
    return Arg(rewriter.create(OpKind::Cat, {std::move(list), 0}, node, &node)->result());
  };
  Arg weight = packed(&ir::LinearOp::weight);
  Arg bias = hasBias ? packed(&ir::LinearOp::bias) : Arg();
  Node *merged = rewriter.create(OpKind::Linear, {linear->input(), weight, bias}, node, &node);
  int64_t last = merged->result()->tensor().rank() - 1, begin = 0;
  for (ir::LinearOp part : parts) {
    int64_t end = begin + part.result()->tensor().sizes.back();
    Node *slice =
        rewriter.create(OpKind::Slice, {merged->result(), last, begin, end, 1}, part.node(), &node);
    replaceAllUsesWith(rewriter, part.result(), slice->result());
    begin = end;
  }
  return true;
}

constexpr Pattern kPackLinearsPatterns[] = {
    CGC_PATTERN(packLinears),
    CGC_PATTERN(normalizeViews),
    CGC_PATTERN(dropIdentity),
};

} // namespace

/// Merges linears of one input, with constant weights and results that only attention uses, into
/// one linear by the concatenated weights, and slices.
struct PackLinearsPass {
  static constexpr const char *name = "pack-linears";
  static constexpr bool explains = true;
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

Result<Changed> PackLinearsPass::run(ir::Graph &graph, PassContext &context) const {
  return runPatterns(graph, kPackLinearsPatterns, context);
}

CGC_DEFINE_PASS(PackLinearsPass)

} // namespace cgc::passes
