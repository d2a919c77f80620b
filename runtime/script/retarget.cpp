// Retarget: rewrites tensors and constants of a loaded module.
#include "runtime/script/retarget.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>

namespace cgc::script {

using torch::jit::Block;
using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

bool isDTypeArgument(const c10::Argument &argument) {
  if (argument.name() == "dtype")
    return true;
  c10::TypePtr type = argument.real_type();
  if (auto optional = type->cast<c10::OptionalType>())
    type = optional->getElementType();
  return type->kind() == c10::TypeKind::ScalarTypeType;
}

c10::ScalarType Target::converted(c10::ScalarType type) const {
  bool changes = precision && c10::isFloatingType(type) &&
                 (c10::isReducedFloatingType(*precision) ||
                  c10::elementSize(type) < c10::elementSize(*precision));
  return changes ? *precision : type;
}

at::Tensor Target::convert(const at::Tensor &tensor) const {
  return tensor.to(device, converted(tensor.scalar_type()));
}

namespace {

/// Returns the constant that replaces that of `node`, if any.
std::optional<c10::IValue> retargetConstant(const Node &node, const Target &target) {
  std::optional<c10::IValue> value = torch::jit::toIValue(node.output());
  if (!value)
    return std::nullopt;
  if (value->isDevice() && value->toDevice() != target.device && !value->toDevice().is_meta())
    return c10::IValue(target.device);
  // 0-d tensors stay on the CPU: ops read them as numbers from there.
  if (value->isTensor() && value->toTensor().defined()) {
    const at::Tensor &tensor = value->toTensor();
    Target where{tensor.dim() == 0 ? tensor.device() : target.device, target.precision};
    return c10::IValue(where.convert(tensor));
  }
  if (value->isTensorList()) {
    c10::List<at::Tensor> converted;
    for (const at::Tensor &tensor : value->toTensorVector())
      converted.push_back(tensor.dim() == 0 ? tensor : target.convert(tensor));
    return c10::IValue(converted);
  }
  return std::nullopt;
}

void retargetBlock(Block &block, Graph &graph, const Target &target) {
  for (Node *node : block.nodes()) {
    for (Block *inner : node->blocks())
      retargetBlock(*inner, graph, target);
    torch::jit::WithInsertPoint point(node);
    if (node->kind() == c10::prim::Constant) {
      if (std::optional<c10::IValue> constant = retargetConstant(*node, target))
        node->output()->replaceAllUsesWith(graph.insertConstant(*constant));
      continue;
    }
    const c10::FunctionSchema *schema = node->maybeSchema();
    if (!schema)
      continue;
    // A constant int may be a dtype in one use and a dimension in another, so each use is replaced
    // separately.
    for (size_t i = 0; i < schema->arguments().size(); ++i) {
      if (schema->arguments()[i].name() == "allow_tf32")
        node->replaceInput(i, graph.insertConstant(target.tf32));
      if (!isDTypeArgument(schema->arguments()[i]))
        continue;
      std::optional<c10::IValue> value = torch::jit::toIValue(node->inputs()[i]);
      if (!value || !value->isInt())
        continue;
      c10::ScalarType type = target.converted(static_cast<c10::ScalarType>(value->toInt()));
      if (static_cast<int64_t>(type) != value->toInt())
        node->replaceInput(i, graph.insertConstant(static_cast<int64_t>(type)));
    }
  }
}

/// Retargets tensors, including those in lists, tuples and dicts.
void retargetValue(const c10::IValue &value, const Target &target) {
  if (value.isTensor() && value.toTensor().defined()) {
    // Works in place, so that a tensor shared by two modules stays shared.
    value.toTensor().set_data(target.convert(value.toTensor()));
  } else if (value.isList()) {
    for (const c10::IValue &element : value.toListRef())
      retargetValue(element, target);
  } else if (value.isTuple()) {
    for (const c10::IValue &element : value.toTupleRef().elements())
      retargetValue(element, target);
  } else if (value.isGenericDict()) {
    for (const auto &entry : value.toGenericDict())
      retargetValue(entry.value(), target);
  }
}

void retargetTensors(const torch::jit::Module &module, const Target &target) {
  const torch::jit::ObjectPtr object = module._ivalue();
  for (size_t slot = 0; slot < object->type()->numAttributes(); ++slot)
    retargetValue(object->getSlot(slot), target);
}

} // namespace

void retarget(torch::jit::Module &module, const Target &target) {
  at::NoGradGuard noGrad;
  for (const torch::jit::Module &submodule : module.modules())
    retargetTensors(submodule, target);
  for (torch::jit::Function *function : module._ivalue()->compilation_unit()->get_functions()) {
    std::shared_ptr<Graph> graph = torch::jit::toGraphFunction(*function).graph();
    retargetBlock(*graph->block(), *graph, target);
  }
}

} // namespace cgc::script
