// decompose: adds the calls of OpDef::decompose to the call's graph, or to a graph of their own.
#include "ir/decompose.h"

#include "ir/op_builder.h"
#include "runtime/base/check.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

namespace cgc::ir {

Result<Values> decompose(GraphRewriter &rewriter, Node &node) {
  const DecomposeFn definition = opDef(node.op()).decompose;
  if (!definition)
    return Status(Code::Unsupported, opName(node.op()).str() + " is not composed of other ops");
  OpBuilder builder(rewriter, &node, &node);
  CGC_ASSIGN_OR_RETURN(Values values, definition(builder));
  values.resize(node.numResults()); // The last ones may be left out.
  for (const auto &[value, result] : llvm::zip_equal(values, node.results()))
    CGC_CHECK((value ? value->tensor().dtype == result.tensor().dtype &&
                           value->tensor().sizes == result.tensor().sizes
                     : !result.hasUsers()) &&
              "a definition has the results of its op");
  return values;
}

/// As decompose(), with the strides of the results.
static Result<Values> decomposeExactly(GraphRewriter &rewriter, Node &node) {
  CGC_ASSIGN_OR_RETURN(Values values, decompose(rewriter, node));
  for (auto [value, result] : llvm::zip_equal(values, node.results()))
    if (value && value->tensor().strides != result.tensor().strides)
      value = OpBuilder(rewriter, &node, &node).call(OpKind::Contiguous, {value});
  return values;
}

bool decomposeCalls(Graph &graph, llvm::function_ref<bool(const Node &)> isChosen) {
  GraphRewriter rewriter(graph);
  for (auto it = graph.begin(); it != graph.end();) {
    const auto next = std::next(it);
    Node &node = *it;
    if (node.kind() == NodeKind::CallFunction && opDef(node.op()).decompose && isChosen(node)) {
      const bool isFirst = it == graph.begin();
      const auto before = isFirst ? it : std::prev(it);
      if (const Result<Values> values = decomposeExactly(rewriter, node); values.isOk()) {
        for (auto [value, result] : llvm::zip_equal(*values, node.results()))
          if (value)
            rewriter.replaceAllUsesWith(&result, value);
        rewriter.erase(&node);
        it = isFirst ? graph.begin() : std::next(before); // The definition's first call.
        continue;
      }
    }
    it = next;
  }
  return rewriter.changed();
}

Result<Definition> definitionOf(const Node &node) {
  Definition definition{std::make_unique<Graph>(opName(node.op()).str()), {}};
  Graph &graph = *definition.graph;
  llvm::DenseMap<Value *, Value *> inputs; // Looked up, never iterated.
  node.forEachInput([&](Value *value) {
    Value *&input = inputs[value];
    if (input)
      return;
    input = graph.placeholder(value->name(), value->type(), node.loc())->result();
    definition.operands.push_back(value);
  });
  std::vector<Arg> args(node.args().begin(), node.args().end());
  for (Arg &arg : args)
    arg.mapValues([&](Value *value) { return Arg(inputs.lookup(value)); });
  Node *call = graph.call(node.op(), std::move(args), node.numResults(), node.loc());
  for (unsigned i = 0; i < node.numResults(); ++i)
    call->result(i)->setType(node.result(i)->type());
  GraphRewriter rewriter(graph);
  CGC_ASSIGN_OR_RETURN(const Values results, decomposeExactly(rewriter, *call));
  graph.erase(call);
  std::vector<Arg> outputs;
  for (auto [value, result] : llvm::zip_equal(results, node.results()))
    outputs.push_back(value && result.hasUsers() ? Arg(value) : Arg());
  graph.createOutput(std::move(outputs), node.loc());
  // The users of a node come after it, so they are gone when the walk reaches it.
  for (auto it = graph.end(); it != graph.begin();) {
    Node &unused = *--it;
    if (unused.kind() != NodeKind::CallFunction ||
        llvm::any_of(unused.results(), [](const Value &value) { return value.hasUsers(); }))
      continue;
    ++it;
    graph.erase(&unused);
  }
  return definition;
}

} // namespace cgc::ir
