// Numbers: replaces 0-d constant operands by Scalar operands.
#include "runtime/script/numbers.h"

#include <ATen/core/Tensor.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>

namespace cgc::script {
namespace {

using torch::jit::Block;
using torch::jit::Graph;
using torch::jit::Node;

/// Returns true if LibTorch has an overload of the same op with a number as the second operand.
bool takesNumber(const Node &node) {
  c10::Symbol kind = node.kind();
  if (kind != c10::aten::add && kind != c10::aten::sub && kind != c10::aten::mul &&
      kind != c10::aten::div)
    return false;
  const c10::FunctionSchema *schema = node.maybeSchema();
  return schema && schema->overload_name() == "Tensor";
}

void restoreInBlock(Block &block, Graph &graph) {
  for (Node *node : block.nodes()) {
    for (Block *inner : node->blocks())
      restoreInBlock(*inner, graph);
    if (!takesNumber(*node))
      continue;
    std::optional<c10::IValue> other = torch::jit::toIValue(node->inputs()[1]);
    if (!other || !other->isTensor() || !other->toTensor().defined())
      continue;
    const at::Tensor &tensor = other->toTensor();
    // A bool takes no part in promotion, and LibTorch has no such overloads for it.
    bool isNumber = c10::isFloatingType(tensor.scalar_type()) ||
                    c10::isIntegralType(tensor.scalar_type(), /*includeBool=*/false);
    if (tensor.dim() != 0 || tensor.layout() != c10::kStrided || !isNumber)
      continue;
    torch::jit::WithInsertPoint point(node);
    node->replaceInput(1, graph.insertConstant(tensor.item()));
  }
}

} // namespace

void restoreNumbers(const torch::jit::Module &module) {
  for (torch::jit::Function *function : module._ivalue()->compilation_unit()->get_functions()) {
    std::shared_ptr<Graph> graph = torch::jit::toGraphFunction(*function).graph();
    restoreInBlock(*graph->block(), *graph);
  }
}

} // namespace cgc::script
