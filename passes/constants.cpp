// Constants: reads and adds constants.
#include "passes/constants.h"

#include "passes/match.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <cstring>

namespace cgc::passes {
namespace {

constexpr int64_t kMaxElements = 1 << 22;

template <class T> T read(const std::byte *at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

double half(const llvm::fltSemantics &semantics, const std::byte *at) {
  return llvm::APFloat(semantics, llvm::APInt(16, read<uint16_t>(at))).convertToDouble();
}

double element(DType dtype, const std::byte *at) {
  switch (dtype) {
  case DType::F32:
    return read<float>(at);
  case DType::F16:
    return half(llvm::APFloat::IEEEhalf(), at);
  case DType::BF16:
    return half(llvm::APFloat::BFloat(), at);
  case DType::F64:
    return read<double>(at);
  case DType::I64:
    return static_cast<double>(read<int64_t>(at));
  case DType::I32:
    return read<int32_t>(at);
  case DType::I16:
    return read<int16_t>(at);
  case DType::I8:
    return read<int8_t>(at);
  case DType::U8:
  case DType::Bool:
    return read<uint8_t>(at);
  }
  llvm_unreachable("no such dtype");
}

/// Returns true if `test` holds for each input value of `node`.
template <class Test> bool allInputs(const ir::Node &node, Test test) {
  bool all = true;
  node.forEachInput([&](const ir::Value *input) { all &= test(input); });
  return all;
}

} // namespace

bool readsState(const ir::Node &node) {
  const ir::Module *owner = node.graph()->owner();
  if (node.kind() != ir::NodeKind::GetAttr || !owner)
    return false;
  const ir::Parameter *parameter = owner->findParameter(node.target());
  return parameter && parameter->kind == ir::Parameter::Kind::State;
}

bool isTrained(const ir::Module &module) {
  return llvm::any_of(module.parameters(),
                      [](const ir::Parameter &parameter) {
                        return parameter.kind == ir::Parameter::Kind::State;
                      }) ||
         llvm::any_of(module.submodules(),
                      [](const auto &submodule) { return isTrained(*submodule); });
}

bool isConstant(ir::Value *value) {
  const ir::Node &base = *layoutOf(value).base->node();
  return base.kind() == ir::NodeKind::GetAttr && !readsState(base);
}

bool dependsOnParametersOnly(const ir::Value *value) {
  llvm::SmallPtrSet<const ir::Value *, 16> seen = {value}; // Looked up, never iterated.
  llvm::SmallVector<const ir::Value *, 16> pending = {value};
  while (!pending.empty()) {
    const ir::Node &node = *pending.pop_back_val()->node();
    if (node.kind() == ir::NodeKind::GetAttr && !readsState(node))
      continue;
    if (node.kind() != ir::NodeKind::CallFunction || !ir::hasTrait(node.op(), ir::kPure))
      return false;
    node.forEachInput([&](const ir::Value *input) {
      if (seen.insert(input).second)
        pending.push_back(input);
    });
  }
  return true;
}

bool dependsOnParametersOnly(const ir::Arg &arg) {
  return arg.isNone() || dependsOnParametersOnly(arg.value());
}

bool hasOneReader(const ir::Value *value) {
  const ir::Node &node = *value->node();
  if (!value->hasOneUser())
    return false;
  if (node.kind() != ir::NodeKind::GetAttr)
    return allInputs(node, hasOneReader);
  return llvm::none_of(*node.graph(), [&](const ir::Node &other) {
    return &other != &node && other.kind() == ir::NodeKind::GetAttr &&
           other.target() == node.target() && other.result()->hasUsers();
  });
}

std::optional<std::vector<double>> elementsOf(ir::Value *value) {
  const ir::TensorType &type = value->tensor();
  Layout layout = layoutOf(value);
  const ir::Node &source = *layout.base->node();
  const ir::Module *owner = source.graph()->owner();
  if (source.kind() != ir::NodeKind::GetAttr || !owner || type.numElements() > kMaxElements)
    return std::nullopt;
  const ir::Parameter *parameter = owner->findParameter(source.target());
  if (!parameter || !parameter->data || readsState(source) || !layout.base->tensor().isContiguous())
    return std::nullopt;
  const std::byte *bytes = parameter->data->bytes().data();
  std::vector<double> elements;
  for (int64_t i = 0; i < type.numElements(); ++i) {
    int64_t rest = i, position = layout.offset;
    for (int64_t dim = type.rank() - 1; dim >= 0; --dim) {
      position += rest % type.sizes[dim] * type.strides[dim];
      rest /= type.sizes[dim];
    }
    elements.push_back(
        element(type.dtype, bytes + position * static_cast<int64_t>(dtypeSize(type.dtype))));
  }
  return elements;
}

std::string findOrAddConstant(ir::Module &module, llvm::StringRef hint,
                              const std::shared_ptr<const ir::TensorData> &data, bool isConverted) {
  for (const ir::Parameter &parameter : module.parameters())
    if (parameter.kind == ir::Parameter::Kind::Constant && parameter.data &&
        parameter.isConverted == isConverted && parameter.type == data->type() &&
        std::memcmp(parameter.data->bytes().data(), data->bytes().data(), data->bytes().size()) ==
            0)
      return parameter.name;
  return module.addConstant(hint, data, isConverted);
}

} // namespace cgc::passes
