// TorchScriptCall: arguments and results by ATen's schema.
#include "frontend/torchscript_call.h"

#include "frontend/convert.h"
#include "runtime/script/retarget.h"

#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>

namespace cgc::frontend {

namespace {

bool isListType(const c10::TypePtr &type) {
  if (auto optional = type->cast<c10::OptionalType>())
    return isListType(optional->getElementType());
  return type->kind() == c10::TypeKind::ListType || type->kind() == c10::TypeKind::TupleType;
}

} // namespace

const c10::Argument *TorchScriptCall::argument(size_t i) const {
  return i < schema_.arguments().size() ? &schema_.arguments()[i] : nullptr;
}

llvm::StringRef TorchScriptCall::argName(size_t i) const {
  return argument(i) ? llvm::StringRef(argument(i)->name()) : "";
}

Result<ir::Arg> TorchScriptCall::arg(size_t i, bool mayBeNumber) {
  const torch::jit::Value *value = node_.inputs()[i];
  ir::Arg arg = mayBeNumber ? importer_.argOrNumber(value) : importer_.arg(value);
  if (!arg.is<int64_t>() || !argument(i) || !script::isDTypeArgument(*argument(i)))
    return arg;
  auto type = static_cast<c10::ScalarType>(arg.as<int64_t>());
  if (std::optional<DType> dtype = toDType(type))
    return ir::Arg(*dtype);
  bool known = arg.as<int64_t>() >= 0 && type < c10::ScalarType::NumOptions;
  return Status(Code::Unsupported,
                std::string("cgc has no dtype ") +
                    (known ? c10::toString(type) : "of this number") +
                    "; convert this part of the model to a floating or integer dtype");
}

bool TorchScriptCall::isList(size_t i) const {
  return isListType(node_.inputs()[i]->type());
}

bool TorchScriptCall::mayBeNone(size_t i) const {
  const c10::TypeKind kind = node_.inputs()[i]->type()->kind();
  return kind == c10::TypeKind::OptionalType || kind == c10::TypeKind::AnyType;
}

bool TorchScriptCall::isDefault(size_t i, const ir::Arg &value) const {
  if (!argument(i) || !argument(i)->default_value())
    return false;
  std::optional<ir::Arg> constant = toConstant(*argument(i)->default_value());
  return constant && *constant == value;
}

bool TorchScriptCall::isOnHost() const {
  return node_.outputs()[0]->type()->kind() != c10::TypeKind::TensorType;
}

std::optional<unsigned> TorchScriptCall::listLength() const {
  for (const torch::jit::Use &use : node_.outputs()[0]->uses())
    if (use.user->kind() == c10::prim::ListUnpack)
      return static_cast<unsigned>(use.user->outputs().size());
  return std::nullopt;
}

} // namespace cgc::frontend
