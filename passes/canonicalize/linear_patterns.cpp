// Linear patterns: merge linears by slices of one weight, and move views and permutations past
// them.
#include "passes/canonicalize/patterns.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {
namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

/// Rows [begin, end) of `source`; all rows if it is not a slice.
struct Rows {
  Value *source = nullptr;
  int64_t begin = 0, end = 0;
};

Rows rowsOf(Value *value) {
  Node *slice = definingOp(value, OpKind::Slice);
  if (!slice || slice->arg(1) != Arg(0) || slice->arg(4) != Arg(1) ||
      !slice->arg(2).is<int64_t>() || !slice->arg(3).is<int64_t>())
    return {value, 0, value->tensor().sizes[0]};
  return {slice->arg(0).value(), slice->arg(2).as<int64_t>(), slice->arg(3).as<int64_t>()};
}

struct Part {
  Node *linear;
  Rows weight;
};

/// Returns true if the bias of `part` is the same slice of `bias` (null for no bias) as the part's
/// weight is of its source.
bool hasBiasFrom(const Part &part, Value *bias) {
  const Arg &arg = part.linear->arg(2);
  if (!bias || !arg.isValue())
    return !bias && !arg.isValue();
  Rows rows = rowsOf(arg.value());
  return rows.source == bias && rows.begin == part.weight.begin && rows.end == part.weight.end;
}

/// Rereads rows [begin, end) of the parameter read by `source`, before `root`.
Value *takeRows(Value *source, int64_t begin, int64_t end, Node &root,
                ir::GraphRewriter &rewriter) {
  Node &attr = *source->node();
  Value *all = rewriter.getAttr(attr.target(), source->type(), attr, &root)->result();
  if (begin == 0 && end == source->tensor().sizes[0])
    return all;
  return rewriter.create(OpKind::Slice, {all, 0, begin, end, 1}, root, &root)->result();
}

} // namespace

bool mergeLinears(Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter) {
  if (!node.is(OpKind::Linear) || node.arg(1).value()->tensor().rank() != 2)
    return false;
  Value *input = node.arg(0).value();
  Value *weight = rowsOf(node.arg(1).value()).source;
  Value *bias = node.arg(2).isValue() ? rowsOf(node.arg(2).value()).source : nullptr;
  auto isParameter = [](Value *v) { return v->node()->kind() == ir::NodeKind::GetAttr; };
  if (!isParameter(weight) || (bias && !isParameter(bias)))
    return false;

  std::vector<Part> parts;
  for (Node *user : uses.users(input))
    if (user->is(OpKind::Linear) && user->arg(0) == Arg(input)) {
      Part part{user, rowsOf(user->arg(1).value())};
      if (part.weight.source == weight && hasBiasFrom(part, bias))
        parts.push_back(part);
    }
  if (parts.size() < 2 || parts.front().linear != &node) // In list order `node` is the first.
    return false;
  llvm::stable_sort(parts, [](auto &a, auto &b) { return a.weight.begin < b.weight.begin; });
  for (size_t i = 1; i < parts.size(); ++i)
    if (parts[i].weight.begin != parts[i - 1].weight.end)
      return false;

  // Each user reads a slice of the merged result's rows.
  int64_t begin = parts.front().weight.begin, end = parts.back().weight.end;
  for (const Part &part : parts) {
    ir::TensorType sliced = part.linear->result()->tensor();
    ir::Dims merged = sliced.sizes;
    merged.back() = end - begin;
    sliced.strides = ir::contiguousStrides(merged);
    if (!acceptsStrides(part.linear->result(), sliced))
      return false;
  }

  Value *mergedWeight = takeRows(weight, begin, end, node, rewriter);
  Arg mergedBias = bias ? Arg(takeRows(bias, begin, end, node, rewriter)) : Arg();
  Node *merged = rewriter.create(OpKind::Linear, {input, mergedWeight, mergedBias}, node, &node);
  int64_t last = merged->result()->tensor().rank() - 1;
  for (const Part &part : parts) {
    Node *slice = rewriter.create(
        OpKind::Slice,
        {merged->result(), last, part.weight.begin - begin, part.weight.end - begin, 1},
        *part.linear, &node);
    replaceAllUsesWith(rewriter, part.linear->result(), slice->result());
  }
  return true;
}

bool unflattenLinear(Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter) {
  if (!node.is(OpKind::View))
    return false;
  Node *linear = definingOp(node.arg(0).value(), OpKind::Linear);
  if (!linear || !uses.hasOneUser(linear->result()))
    return false;
  // Waits until two views in a row are one: the second tells which rows are wanted.
  if (uses.hasOneUser(node.result()))
    if (Node &user = *uses.users(node.result()).front();
        isView(user) && user.numResults() == 1 && user.result()->tensor().isContiguous())
      return false;
  Value *input = linear->arg(0).value();
  const ir::TensorType &output = linear->result()->tensor();
  ir::Dims sizes = node.result()->tensor().sizes;
  if (input->tensor().rank() != 2 || output.rank() != 2 || sizes.empty() ||
      sizes.back() != output.sizes.back() || !definingOp(input, OpKind::View))
    return false;
  sizes.back() = input->tensor().sizes.back();
  auto viewed =
      ir::inferResults(OpKind::View, {Arg(input), Arg::ints(sizes)}, input->tensor().device);
  if (!viewed || !(*viewed)[0].viewOffset)
    return false;
  Node *rows = rewriter.create(OpKind::View, {input, Arg::ints(sizes)}, node, &node);
  Node *direct = rewriter.create(OpKind::Linear, {rows->result(), linear->arg(1), linear->arg(2)},
                                 *linear, &node);
  replaceAllUsesWith(rewriter, node.result(), direct->result());
  return true;
}

bool sinkView(Node &node, const ir::UseMap &, ir::GraphRewriter &rewriter) {
  if (!node.is(OpKind::Linear) && !node.is(OpKind::LayerNorm))
    return false;
  Node *view = definingOp(node.arg(0).value(), OpKind::View);
  if (!view || node.result()->tensor().rank() != view->result()->tensor().rank() ||
      (node.is(OpKind::LayerNorm) && node.arg("normalized_shape").list().size() != 1))
    return false;
  Value *rows = view->arg(0).value();
  const ir::TensorType &from = rows->tensor(), &to = view->result()->tensor();
  auto withoutOnes = [](ir::Dims sizes) {
    llvm::erase(sizes, 1);
    return sizes;
  };
  if (from.rank() != to.rank() || from.rank() < 3 || !from.isContiguous() ||
      from.sizes.back() != to.sizes.back() || withoutOnes(from.sizes) != withoutOnes(to.sizes))
    return false;
  std::vector<Arg> args = node.args().vec();
  args[0] = Arg(rows);
  Node *direct = rewriter.create(node.op(), std::move(args), node, &node);
  Node *restored = rewriter.create(
      OpKind::View, {direct->result(), Arg::ints(node.result()->tensor().sizes)}, node, &node);
  replaceAllUsesWith(rewriter, node.result(), restored->result());
  return true;
}

bool sinkPermute(Node &node, const ir::UseMap &, ir::GraphRewriter &rewriter) {
  if (!node.is(OpKind::Linear) && !node.is(OpKind::LayerNorm))
    return false;
  Value *input = node.arg(0).value();
  const ir::TensorType &type = input->tensor();
  auto order = denseOrder(type);
  if (!order || isIdentity(*order))
    return false;
  int64_t inner = node.is(OpKind::Linear) ? 1 : node.arg("normalized_shape").list().size();
  for (int64_t dim = type.rank() - inner; dim < type.rank(); ++dim)
    if ((*order)[dim] != dim)
      return false;
  if (node.result()->tensor().rank() != type.rank()) // A linear with a weight [K].
    return false;

  // The result with its rows in memory order, viewed in the original order.
  ir::TensorType sunk = node.result()->tensor();
  ir::Dims memorySizes, back = inverse(*order);
  for (int64_t dim : *order)
    memorySizes.push_back(sunk.sizes[dim]);
  ir::Dims strides = ir::contiguousStrides(memorySizes);
  for (int64_t dim = 0; dim < sunk.rank(); ++dim)
    sunk.strides[dim] = strides[back[dim]];
  if (!acceptsStrides(node.result(), sunk))
    return false;

  Node *rows = rewriter.create(OpKind::Permute, {input, Arg::ints(*order)}, node, &node);
  std::vector<Arg> args = node.args().vec();
  args[0] = Arg(rows->result());
  Node *direct = rewriter.create(node.op(), std::move(args), node, &node);
  Node *restored =
      rewriter.create(OpKind::Permute, {direct->result(), Arg::ints(back)}, node, &node);
  replaceAllUsesWith(rewriter, node.result(), restored->result());
  return true;
}

} // namespace cgc::passes
