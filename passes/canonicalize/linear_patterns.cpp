// Linear patterns: merge linears by slices of one weight, and move views and permutations past
// them.
#include "passes/canonicalize/patterns.h"
#include "passes/constants.h"

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
  auto slice = ir::SliceOp::of(value);
  if (!slice || slice->dim() != 0 || slice->step() != 1 || !slice->start() || !slice->end())
    return {value, 0, value->tensor().sizes[0]};
  return {slice->self(), *slice->start(), *slice->end()};
}

struct Part {
  ir::LinearOp linear;
  Rows weight;
};

/// Returns true if the bias of `part` is the same slice of `bias` (null for no bias) as the part's
/// weight is of its source.
bool hasBiasFrom(const Part &part, Value *bias) {
  Value *own = part.linear.bias();
  if (!bias || !own)
    return !bias && !own;
  Rows rows = rowsOf(own); // As many as the weight's.
  return rows.source == bias && rows.begin == part.weight.begin;
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

/// Returns how many of the last dimensions a linear or a layer_norm reads as one row; 0 for other
/// ops.
int64_t rowDims(const Node &node) {
  if (node.is(OpKind::Linear))
    return 1;
  auto norm = ir::LayerNormOp::of(node);
  return norm ? static_cast<int64_t>(norm->normalizedShape().size()) : 0;
}

} // namespace

bool mergeLinears(Node &node, PatternRewriter &rewriter) {
  auto linear = ir::LinearOp::of(node);
  if (!linear || linear->weight()->tensor().rank() != 2)
    return false;
  Value *input = linear->input();
  Value *weight = rowsOf(linear->weight()).source;
  Value *bias = linear->bias() ? rowsOf(linear->bias()).source : nullptr;
  auto isParameter = [](Value *v) {
    return v->node()->kind() == ir::NodeKind::GetAttr && !readsState(*v->node());
  };
  if (!isParameter(weight) || (bias && !isParameter(bias)))
    return rewriter.notifyMatchFailure(
        node, "the weight or the bias is neither a parameter nor a slice of one's rows");

  std::vector<Part> parts;
  for (Node *user : input->users())
    if (auto other = ir::LinearOp::of(*user); other && other->input() == input) {
      Part part{*other, rowsOf(other->weight())};
      if (part.weight.source == weight && hasBiasFrom(part, bias))
        parts.push_back(part);
    }
  if (parts.size() < 2)
    return rewriter.notifyMatchFailure(
        node, "no other linear of the same input takes rows of the same weight and bias");
  if (&parts.front().linear.node() != &node) // Users come in graph order: the first is the root.
    return false;
  llvm::stable_sort(parts, [](auto &a, auto &b) { return a.weight.begin < b.weight.begin; });
  for (size_t i = 1; i < parts.size(); ++i)
    if (parts[i].weight.begin != parts[i - 1].weight.end)
      return rewriter.notifyMatchFailure(node, "the rows of the weight are not consecutive slices");

  // Each user reads a slice of the merged result's rows.
  int64_t begin = parts.front().weight.begin, end = parts.back().weight.end;
  for (const Part &part : parts) {
    ir::TensorType sliced = part.linear.result()->tensor();
    ir::Dims merged = sliced.sizes;
    merged.back() = end - begin;
    sliced.strides = ir::contiguousStrides(merged);
    if (const Node *reader = findStridesRefused(part.linear.result(), sliced))
      return rewriter.notifyMatchFailure(node, [&] { return stridesRefused(*reader, sliced); });
  }

  Value *mergedWeight = takeRows(weight, begin, end, node, rewriter);
  Arg mergedBias = bias ? Arg(takeRows(bias, begin, end, node, rewriter)) : Arg();
  Node *merged = rewriter.create(OpKind::Linear, {input, mergedWeight, mergedBias}, node, &node);
  int64_t last = merged->result()->tensor().rank() - 1;
  for (const Part &part : parts) {
    Node *slice = rewriter.create(
        OpKind::Slice,
        {merged->result(), last, part.weight.begin - begin, part.weight.end - begin, 1},
        part.linear.node(), &node);
    replaceAllUsesWith(rewriter, part.linear.result(), slice->result());
  }
  return true;
}

bool multiplyOuterProduct(Node &node, PatternRewriter &rewriter) {
  auto matmul = ir::MatmulOp::of(node);
  if (!matmul)
    return false;
  const ir::TensorType &x = matmul->self()->tensor(), &z = matmul->other()->tensor();
  if (x.rank() < 2 || z.rank() < 2 || x.sizes.back() != 1)
    return false;
  Node *product = rewriter.create(OpKind::Mul, {matmul->self(), matmul->other()}, node, &node);
  // Mul follows the strides of its operands.
  Node *dense = rewriter.create(OpKind::Contiguous, {product->result()}, node, &node);
  replaceAllUsesWith(rewriter, node.result(), dense->result());
  return true;
}

bool unflattenLinear(Node &node, PatternRewriter &rewriter) {
  auto view = ir::ViewOp::of(node);
  auto linear = view ? ir::LinearOp::of(view->self()) : std::nullopt;
  if (!linear)
    return false;
  if (!linear->result()->hasOneUser())
    return rewriter.notifyMatchFailure(node, "the linear has other users");
  // Waits until two views in a row are one: the second tells which rows are wanted.
  if (node.result()->hasOneUser())
    if (Node &user = *node.result()->users().front();
        isView(user) && user.numResults() == 1 && user.result()->tensor().isContiguous())
      return false;
  Value *input = linear->input();
  const ir::TensorType &output = linear->result()->tensor();
  ir::Dims sizes = node.result()->tensor().sizes;
  if (input->tensor().rank() != 2 || output.rank() != 2 || sizes.empty() ||
      sizes.back() != output.sizes.back() || !ir::ViewOp::of(input))
    return rewriter.notifyMatchFailure(
        node, "it does more than to split the rows of a matrix that is a view");
  sizes.back() = input->tensor().sizes.back();
  auto viewed =
      ir::inferResults(OpKind::View, {Arg(input), Arg::ints(sizes)}, input->tensor().device);
  if (!viewed || !(*viewed)[0].viewOffset)
    return rewriter.notifyMatchFailure(node, "the linear's input cannot be viewed in these sizes");
  Node *rows = rewriter.create(OpKind::View, {input, Arg::ints(sizes)}, node, &node);
  Node *direct = rewriter.create(OpKind::Linear, linear->node().argsWith("input", rows->result()),
                                 linear->node(), &node);
  replaceAllUsesWith(rewriter, node.result(), direct->result());
  return true;
}

bool sinkView(Node &node, PatternRewriter &rewriter) {
  const int64_t inner = rowDims(node);
  if (inner != 1)
    return false;
  auto view = ir::ViewOp::of(node.arg("input").value());
  if (!view || node.result()->tensor().rank() != view->result()->tensor().rank())
    return false;
  Value *rows = view->self();
  const ir::TensorType &from = rows->tensor(), &to = view->result()->tensor();
  auto withoutOnes = [](ir::Dims sizes) {
    llvm::erase(sizes, 1);
    return sizes;
  };
  if (from.rank() != to.rank() || from.rank() < 3 || !from.isContiguous() ||
      from.sizes.back() != to.sizes.back() || withoutOnes(from.sizes) != withoutOnes(to.sizes))
    return false;
  Node *direct = rewriter.create(node.op(), node.argsWith("input", rows), node, &node);
  Node *restored = rewriter.create(
      OpKind::View, {direct->result(), Arg::ints(node.result()->tensor().sizes)}, node, &node);
  replaceAllUsesWith(rewriter, node.result(), restored->result());
  return true;
}

bool sinkPermute(Node &node, PatternRewriter &rewriter) {
  const int64_t inner = rowDims(node);
  if (inner == 0)
    return false;
  Value *input = node.arg("input").value();
  const ir::TensorType &type = input->tensor();
  auto order = denseOrder(type);
  if (!order || isIdentity(*order))
    return false;
  for (int64_t dim = type.rank() - inner; dim < type.rank(); ++dim)
    if ((*order)[dim] != dim)
      return rewriter.notifyMatchFailure(node, "the permutation moves a dimension within the rows");
  if (node.result()->tensor().rank() != type.rank())
    return rewriter.notifyMatchFailure(node, "the weight is a vector");

  // The result with its rows in memory order, viewed in the original order.
  ir::TensorType sunk = node.result()->tensor();
  ir::Dims memorySizes, back = inverse(*order);
  for (int64_t dim : *order)
    memorySizes.push_back(sunk.sizes[dim]);
  ir::Dims strides = ir::contiguousStrides(memorySizes);
  for (int64_t dim = 0; dim < sunk.rank(); ++dim)
    sunk.strides[dim] = strides[back[dim]];
  if (const Node *reader = findStridesRefused(node.result(), sunk))
    return rewriter.notifyMatchFailure(node, [&] { return stridesRefused(*reader, sunk); });

  Node *rows = rewriter.create(OpKind::Permute, {input, Arg::ints(*order)}, node, &node);
  Node *direct = rewriter.create(node.op(), node.argsWith("input", rows->result()), node, &node);
  Node *restored =
      rewriter.create(OpKind::Permute, {direct->result(), Arg::ints(back)}, node, &node);
  replaceAllUsesWith(rewriter, node.result(), restored->result());
  return true;
}

} // namespace cgc::passes
