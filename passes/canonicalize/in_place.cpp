// In-place ops: made functional where the mutation is not observable, refused where it is.
#include "passes/canonicalize/in_place.h"

#include "ir/text/text.h"
#include "passes/constants.h"
#include "passes/match.h"
#include "runtime/base/check.h"

#include "llvm/ADT/DenseSet.h"

#include <algorithm>

namespace cgc::passes {
namespace {

using ir::Node;
using ir::OpKind;
using ir::Value;

/// Returns the value whose memory `value` has: itself unless it is a view.
Value *memoryOf(Value *value) {
  while (isAlias(*value->node()))
    value = ir::aliasedArg(*value->node()).value();
  return value;
}

/// Returns the views through which `node` overwrites part of a value, innermost first, if each is a
/// slice of step 1 or a select. Otherwise, or if `node` overwrites the whole value, returns an
/// empty list.
std::vector<Node *> viewsOf(Node &node) {
  std::vector<Node *> views;
  for (Value *value = ir::aliasedArg(node).value(); isAlias(*value->node());
       value = ir::aliasedArg(*value->node()).value()) {
    Node *view = value->node();
    if (!view->is(OpKind::Select) &&
        !(view->is(OpKind::Slice) && view->arg("step") == ir::Arg(int64_t{1})))
      return {};
    views.push_back(view);
  }
  return views;
}

/// Later reads of the memory that `node` overwrites.
struct Reads {
  bool wholes = false;   ///< A value that one of the `views` is a view of is read.
  std::string otherView; ///< The first other view that is read, and where; empty if none is.
};

Reads readsAfter(Node &node, llvm::ArrayRef<Node *> views) {
  Value *overwritten = ir::aliasedArg(node).value();
  Value *base = memoryOf(overwritten);
  llvm::DenseSet<const Value *> wholes, others; // Looked up, never iterated.
  for (Node *view : views)
    wholes.insert(ir::aliasedArg(*view).value());
  ir::Graph &graph = *node.graph();
  auto it = graph.begin();
  for (; &*it != &node; ++it)
    for (Value &value : it->results())
      if (&value != overwritten && !wholes.contains(&value) && value.isTensor() &&
          memoryOf(&value) == base)
        others.insert(&value);
  Reads reads;
  for (++it; it != graph.end(); ++it)
    it->forEachInput([&](Value *input) {
      reads.wholes |= wholes.contains(input);
      if (reads.otherView.empty() && others.contains(input))
        reads.otherView = "%" + input->name() + ", is still in use: " + readBy(*it);
    });
  return reads;
}

/// Returns a bound or index counted from the front, clamped to [0, size].
int64_t fromFront(const ir::Arg &arg, int64_t size) {
  const int64_t value = arg.isNone() ? 0 : arg.as<int64_t>();
  return std::clamp<int64_t>(value < 0 ? value + size : value, 0, size);
}

/// Returns a copy of `whole` with `part` at the elements that `view` addresses.
Value *withPart(const Node &view, Value *whole, Value *part, const Node &root, Node *before,
                ir::GraphRewriter &rewriter) {
  const auto create = [&](OpKind op, std::vector<ir::Arg> args) {
    return rewriter.create(op, std::move(args), root, before)->result();
  };
  const ir::Dims sizes = whole->tensor().sizes;
  const int64_t given = view.arg("dim").as<int64_t>();
  const int64_t dim = given < 0 ? given + static_cast<int64_t>(sizes.size()) : given;
  const bool isIndex = view.is(OpKind::Select);
  const int64_t begin = fromFront(view.arg(isIndex ? "index" : "start"), sizes[dim]);
  if (isIndex)
    part = create(OpKind::Unsqueeze, {part, dim});
  const int64_t end = begin + part->tensor().sizes[dim];
  ir::Arg::List pieces;
  if (begin > 0)
    pieces.emplace_back(create(OpKind::Slice, {whole, dim, int64_t{0}, begin, int64_t{1}}));
  pieces.emplace_back(part);
  if (end < sizes[dim])
    pieces.emplace_back(create(OpKind::Slice, {whole, dim, end, sizes[dim], int64_t{1}}));
  return pieces.size() == 1 ? part : create(OpKind::Cat, {std::move(pieces), dim});
}

/// After `node`, which is functional now, recomputes from its result every value that the `views`
/// lead through.
void writeBack(Node &node, llvm::ArrayRef<Node *> views, ir::GraphRewriter &rewriter) {
  Node *before = &*std::next(node.getIterator());
  Value *whole = node.result();
  for (Node *view : views)
    whole = withPart(*view, ir::aliasedArg(*view).value(), whole, node, before, rewriter);
  Value *base = ir::aliasedArg(*views.back()).value();
  std::vector<std::pair<Value *, Value *>> anew = {{base, whole}};
  for (Node *view : llvm::reverse(views)) {
    whole = rewriter.create(view->op(), view->argsWith("self", whole), node, before)->result();
    anew.emplace_back(view == views.front() ? node.result() : view->result(), whole);
  }
  Node *last = &*std::prev(before->getIterator());
  for (const auto &[old, fresh] : anew)
    rewriter.replaceUsesAfter(last, old, fresh);
}

/// The error of an in-place op on the tensor `path` of `root`.
Overwritten overwrittenTensor(const ir::Module &root, const std::string &path) {
  const ir::Parameter &parameter = *root.findParameter(path);
  const bool isBuffer =
      parameter.kind == ir::Parameter::Kind::Buffer || parameter.role == StateRole::Buffer;
  const std::string what = (isBuffer ? "buffer '" : "parameter '") + path + "'";
  if (!isTrained(root))
    return {ir::Cause::MutatesState, "it overwrites the " + what};
  if (isBuffer)
    return {ir::Cause::None, "it overwrites a view of the " + what +
                                 ", and a training step can only overwrite a whole buffer: "
                                 "compute the new value of all of it and give it by copy_()"};
  return {ir::Cause::None, "it overwrites the " + what +
                               ", which only the optimizer may change: limit it with --clamp, or "
                               "make it a buffer"};
}

/// Returns true if `node` overwrites a view whose elements share memory, which PyTorch writes once
/// for each of them.
bool overwritesShared(const Node &node) {
  for (const Value *value = ir::aliasedArg(node).value(); value;) {
    const Node &view = *value->node();
    if (view.kind() != ir::NodeKind::CallFunction || !ir::hasTrait(view.op(), ir::kView))
      return false;
    if (view.is(OpKind::Unfold)) {
      const int64_t *const size = view.arg("size").getIf<int64_t>();
      const int64_t *const step = view.arg("step").getIf<int64_t>();
      if (!size || !step || *step < *size)
        return true;
    }
    value = ir::aliasedArg(view).isValue() ? ir::aliasedArg(view).value() : nullptr;
  }
  return false;
}

} // namespace

std::string readBy(const Node &reader) {
  return reader.kind() == ir::NodeKind::Output
             ? "the model returns it"
             : "it is read at " +
                   (reader.loc().isKnown() ? toString(reader.loc()) : toString(reader));
}

Overwritten overwritten(Node &node) {
  const Value *base = memoryOf(ir::aliasedArg(node).value());
  if (base->node()->kind() == ir::NodeKind::Placeholder)
    return {ir::Cause::MutatesInput, "it overwrites the input '" + base->name() + "'"};
  if (base->node()->kind() == ir::NodeKind::GetAttr)
    return overwrittenTensor(*node.graph()->owner(), base->node()->target());
  return {};
}

bool functionalize(ir::Graph &graph, ir::Diagnostics &diagnostics) {
  ir::GraphRewriter rewriter(graph);
  for (Node &node : graph) {
    if (node.kind() != ir::NodeKind::CallFunction || !node.isInPlace())
      continue;
    const Overwritten what = overwritten(node);
    if (!what.message.empty())
      diagnostics.error(node, "in-place op: " + what.message, what.cause);
    const std::vector<Node *> views = viewsOf(node);
    const Reads reads = readsAfter(node, views);
    if (what.message.empty() && overwritesShared(node))
      diagnostics.error(node, "in-place op: it overwrites windows of unfold that share elements",
                        ir::Cause::MutatesView);
    if (what.message.empty() && !reads.otherView.empty())
      diagnostics.error(node, "in-place op: another view of what it overwrites, " + reads.otherView,
                        ir::Cause::MutatesView);
    rewriter.makeFunctional(&node);
    if (reads.wholes)
      writeBack(node, views, rewriter);
    Node *refused = ir::reinferTypes(graph);
    CGC_CHECK(!refused && "an in-place op gave another type than its functional form");
  }
  return rewriter.changed();
}

} // namespace cgc::passes
