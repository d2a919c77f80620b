// GraphImporter: maps TorchScript values and constants to the IR.
#include "frontend/graph_import.h"

#include "runtime/script/literals.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace cgc::frontend {

namespace prim = c10::prim;
using ir::Arg;
using ir::OpKind;
using torch::jit::Node;
using torch::jit::Value;

std::string plainName(const Value &value) {
  std::string name = value.debugName();
  name = name.substr(0, name.find('.'));
  for (char &c : name)
    if (!llvm::isAlnum(c))
      c = '_';
  return name.empty() || llvm::isDigit(name[0]) ? "" : name;
}

Arg GraphImporter::arg(const Value *value) {
  if (auto constant = tensorConstants_.find(value); constant != tensorConstants_.end())
    if (!args_.count(value))
      args_[value] = materialize(constant->second, locOf(*value->node()));
  if (auto found = args_.find(value); found != args_.end())
    return found->second;
  refuse(*value->node(), "a module is used as a value; call its methods directly");
  return args_.lookup(value);
}

Arg GraphImporter::argOrNumber(const Value *value) {
  auto constant = tensorConstants_.find(value);
  if (constant == tensorConstants_.end() || constant->second.dim() != 0 ||
      !c10::isIntegralType(constant->second.scalar_type(), /*includeBool=*/false))
    return arg(value);
  return Arg(constant->second.item().toLong());
}

std::vector<Arg> GraphImporter::argsOf(c10::ArrayRef<const Value *> values) {
  std::vector<Arg> args;
  for (const Value *value : values)
    args.push_back(arg(value));
  return args;
}

void GraphImporter::bind(const Value *value, Arg arg) {
  if (std::string name = plainName(*value);
      !name.empty() && arg.isValue() && llvm::isDigit(arg.value()->name()[0]))
    graph_.rename(arg.value(), name);
  args_[value] = std::move(arg);
}

Arg GraphImporter::materialize(const at::Tensor &tensor, ir::Loc loc) {
  std::shared_ptr<const ir::TensorData> data = state_.tensors.get(tensor);
  std::string name;
  for (const ir::Parameter &parameter : module_.parameters())
    if (parameter.kind == ir::Parameter::Kind::Constant && parameter.data == data)
      name = parameter.name;
  ir::TensorType type = data->type();
  if (name.empty())
    name = module_.addConstant(script::kLiteral, std::move(data));
  return graph_.getAttr(name, std::move(type), std::move(loc))->result();
}

Arg GraphImporter::importIValue(const c10::IValue &value, const Node &node) {
  if (std::optional<Arg> constant = toConstant(value))
    return *constant;
  if (value.isTensor()) {
    if (std::string why = whyUnsupported(value.toTensor()); !why.empty())
      return refuse(node, "cgc does not support " + why);
    return materialize(value.toTensor(), locOf(node));
  }
  if (value.isTensorList() || value.isTuple()) {
    Arg::List list;
    auto append = [&](const c10::IValue &element) { list.push_back(importIValue(element, node)); };
    if (value.isTuple())
      llvm::for_each(value.toTupleRef().elements(), append);
    else
      llvm::for_each(value.toListRef(), append);
    return Arg(std::move(list));
  }
  return refuse(node, "cgc does not support a constant of type " + value.tagKind());
}

Arg GraphImporter::asValue(Arg arg, ir::Loc loc) {
  if (!arg.isList())
    return arg;
  return graph_.call(OpKind::PrimList, {std::move(arg)}, 1, std::move(loc))->result();
}

} // namespace cgc::frontend
