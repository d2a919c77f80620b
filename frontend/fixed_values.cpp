// GraphImporter: runs what depends on parameters alone and cgc has no rule for, and says which
// calls change nothing.
#include "frontend/graph_import.h"
#include "frontend/guard.h"
#include "frontend/ops/op_import.h"

#include "llvm/ADT/STLExtras.h"

#include <ATen/core/grad_mode.h>
#include <ATen/core/jit_type.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/alias_analysis.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/interpreter.h>

namespace cgc::frontend {

namespace prim = c10::prim;
using torch::jit::Block;
using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

namespace {

constexpr unsigned kMaxBlockDepth = 64; ///< Bounds the nesting of blocks.

/// Returns true if `matches` holds for a node of `block`, at any depth. Blocks that are nested too
/// deep count as a match.
bool anyNode(const Block &block, llvm::function_ref<bool(const Node &)> matches,
             unsigned depth = 0) {
  return llvm::any_of(block.nodes(), [&](const Node *node) {
    return matches(*node) || llvm::any_of(node->blocks(), [&](const Block *inner) {
             return depth >= kMaxBlockDepth || anyNode(*inner, matches, depth + 1);
           });
  });
}

bool lacksRow(const Node &node) {
  const c10::FunctionSchema *schema = node.maybeSchema();
  return schema && !hasRow(schema->name(), schema->overload_name());
}

/// Returns true if the results of `code` may share memory with a tensor among its inputs or
/// attributes, or if it changes such an input. Then its results alone do not stand for a call of
/// it.
bool sharesMemory(const std::shared_ptr<Graph> &code) {
  const torch::jit::AliasDb aliases(code);
  std::vector<const Value *> tensors;
  for (const Value *input : code->inputs())
    if (aliases.hasWriters(input))
      return true;
    else
      tensors.push_back(input);
  anyNode(*code->block(), [&](const Node &node) {
    if (node.kind() == prim::GetAttr)
      tensors.push_back(node.output());
    return false;
  });
  return llvm::any_of(code->outputs(), [&](const Value *output) {
    return llvm::any_of(tensors, [&](const Value *tensor) {
      return aliases.mayContainAlias(const_cast<Value *>(output), const_cast<Value *>(tensor));
    });
  });
}

/// Returns true if the op changes an operand or returns a view of one.
bool sharesMemory(const c10::FunctionSchema &schema) {
  const auto isAlias = [](const c10::Argument &argument) {
    return argument.alias_info() != nullptr;
  };
  return llvm::any_of(schema.arguments(), isAlias) || llvm::any_of(schema.returns(), isAlias);
}

/// Returns the code of the method of `self` that computes the results of `node`, a node of `source`
/// outside of its blocks; null unless it reads nothing but attributes and gives the same whenever
/// it runs.
std::shared_ptr<Graph> codeOf(const Node &node, Graph &source) {
  std::shared_ptr<Graph> code = source.copy();
  while (!code->outputs().empty())
    code->eraseOutput(0);
  // The copy has the same nodes in the same order. Later nodes may overwrite the results.
  for (const Node *last = source.return_node()->prev(); last != &node; last = last->prev())
    code->return_node()->prev()->destroy();
  for (Value *output : code->return_node()->prev()->outputs())
    code->registerOutput(output);
  torch::jit::Inline(*code);
  torch::jit::EliminateDeadCode(code);
  const bool readsInput =
      llvm::any_of(code->inputs().slice(1), [](const Value *input) { return input->hasUses(); });
  const bool isRandom =
      anyNode(*code->block(), [](const Node &inner) { return inner.isNondeterministic(); });
  if (readsInput || isRandom || !isPure(*code))
    return nullptr;
  while (code->inputs().size() > 1)
    code->eraseInput(1);
  return code;
}

} // namespace

bool isPure(Graph &graph) {
  const std::shared_ptr<Graph> flat = graph.copy();
  torch::jit::Inline(*flat);
  const torch::jit::AliasDb aliases(flat);
  // Inline() leaves calls of what it does not know.
  const auto mayChangeAttribute = [&](const Node &node) {
    return node.kind() == prim::SetAttr || node.kind() == prim::CallMethod ||
           node.kind() == prim::CallFunction ||
           (node.kind() == prim::GetAttr && aliases.hasWriters(node.output()));
  };
  return !anyNode(*flat->block(), mayChangeAttribute) &&
         llvm::none_of(flat->inputs(),
                       [&](const Value *input) { return aliases.hasWriters(input); });
}

bool GraphImporter::needsLibTorch(const Node &node) const {
  std::shared_ptr<Graph> callee;
  if (node.kind() == prim::CallMethod) {
    auto receiver = submodules_.find(node.inputs()[0]);
    if (receiver != submodules_.end())
      callee = receiver->second.module.get_method(node.s(c10::attr::name)).graph();
  } else if (node.kind() == prim::CallFunction) {
    if (auto type = node.inputs()[0]->type()->cast<c10::FunctionType>())
      callee = torch::jit::toGraphFunction(*type->function()).graph();
  }
  if (!callee)
    return lacksRow(node) && !sharesMemory(*node.maybeSchema());
  callee = callee->copy();
  torch::jit::Inline(*callee);
  return anyNode(*callee->block(), lacksRow) && !sharesMemory(callee);
}

bool GraphImporter::importFixed(const Node &node) {
  const bool varies =
      node.owningBlock() != source_->block() || !node.blocks().empty() ||
      llvm::any_of(node.inputs(), [&](const Value *input) { return varying_.contains(input); });
  if (varies) {
    varying_.insert(node.outputs().begin(), node.outputs().end());
    return false;
  }
  // Training changes parameters.
  if (state_.hasGradients || node.outputs().empty() || !needsLibTorch(node))
    return false;
  torch::jit::Stack results{self_._ivalue()};
  const Status status = guarded(Code::Unsupported, [&]() -> Status {
    const std::shared_ptr<Graph> code = codeOf(node, *source_);
    if (!code)
      return Status(Code::Unsupported, "");
    const at::NoGradGuard noGradients;
    torch::jit::InterpreterState(torch::jit::Code(code, graph_.name())).run(results);
    return Status::ok();
  });
  const auto isTensor = [](const c10::IValue &value) {
    return value.isTensor() && whyUnsupported(value.toTensor()).empty();
  };
  // The import of the node reports why cgc cannot compile it.
  if (!status.isOk() || !llvm::all_of(results, isTensor))
    return false;
  for (auto [output, result] : llvm::zip_equal(node.outputs(), results))
    tensorConstants_[output] = result.toTensor().contiguous();
  return true;
}

} // namespace cgc::frontend
