// Arguments: conversion by the types in the overload's schema.
#include "runtime/aten/aten_arguments.h"

#include "runtime/base/check.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/jit_type.h>

#include <optional>

namespace cgc::aten {
namespace {

template <class... Fs> struct Overloaded : Fs... {
  using Fs::operator()...;
};

std::string kindName(const AtenArg &arg) {
  return std::visit(
      Overloaded{[](NoneArg) { return "None"; }, [](TensorId) { return "a tensor"; },
                 [](const std::vector<TensorId> &) { return "a list of tensors"; },
                 [](int64_t) { return "an int"; }, [](double) { return "a float"; },
                 [](bool) { return "a bool"; }, [](const std::string &) { return "a string"; },
                 [](DType) { return "a dtype"; }, [](DeviceArg) { return "a device"; },
                 [](const std::vector<int64_t> &) { return "a list of ints"; },
                 [](const std::vector<double> &) { return "a list of floats"; }},
      arg);
}

std::optional<c10::Scalar> asScalar(const AtenArg &arg) {
  if (auto *i = std::get_if<int64_t>(&arg))
    return c10::Scalar(*i);
  if (auto *d = std::get_if<double>(&arg))
    return c10::Scalar(*d);
  if (auto *b = std::get_if<bool>(&arg))
    return c10::Scalar(*b);
  return std::nullopt;
}

/// Converts a list; std::nullopt if its elements do not fit. An empty list has no element kind and
/// fits any list.
std::optional<c10::IValue> asList(const AtenArg &arg, const c10::Type &element,
                                  const ArgumentSource &source) {
  auto *ints = std::get_if<std::vector<int64_t>>(&arg);
  auto *doubles = std::get_if<std::vector<double>>(&arg);
  auto *tensors = std::get_if<std::vector<TensorId>>(&arg);
  bool isEmpty = (ints && ints->empty()) || (doubles && doubles->empty());
  switch (element.kind()) {
  case c10::TypeKind::IntType:
  case c10::TypeKind::SymIntType: {
    if (!ints && !isEmpty)
      return std::nullopt;
    c10::List<int64_t> list;
    for (int64_t i : ints ? *ints : std::vector<int64_t>())
      list.push_back(i);
    return c10::IValue(std::move(list));
  }
  case c10::TypeKind::BoolType: {
    if (!ints)
      return std::nullopt;
    c10::List<bool> list;
    for (int64_t i : *ints)
      list.push_back(i != 0);
    return c10::IValue(std::move(list));
  }
  case c10::TypeKind::FloatType: {
    if (!ints && !doubles)
      return std::nullopt;
    c10::List<double> list;
    if (ints)
      for (int64_t i : *ints)
        list.push_back(static_cast<double>(i));
    else
      for (double d : *doubles)
        list.push_back(d);
    return c10::IValue(std::move(list));
  }
  case c10::TypeKind::TensorType: {
    if (!tensors && !isEmpty)
      return std::nullopt;
    c10::List<at::Tensor> list;
    for (TensorId id : tensors ? *tensors : std::vector<TensorId>()) {
      if (id == kNoTensor)
        return std::nullopt;
      list.push_back(source.tensor(id));
    }
    return c10::IValue(std::move(list));
  }
  case c10::TypeKind::OptionalType: {
    if ((!tensors && !isEmpty) || element.expectRef<c10::OptionalType>().getElementType()->kind() !=
                                      c10::TypeKind::TensorType)
      return std::nullopt;
    c10::List<std::optional<at::Tensor>> list;
    for (TensorId id : tensors ? *tensors : std::vector<TensorId>())
      list.push_back(id == kNoTensor ? std::nullopt : std::optional(source.tensor(id)));
    return c10::IValue(std::move(list));
  }
  default:
    return std::nullopt;
  }
}

std::optional<c10::IValue> convert(const AtenArg &arg, const c10::Type &type,
                                   const ArgumentSource &source) {
  auto *integer = std::get_if<int64_t>(&arg);
  switch (type.kind()) {
  case c10::TypeKind::OptionalType:
    if (std::holds_alternative<NoneArg>(arg))
      return c10::IValue();
    return convert(arg, *type.expectRef<c10::OptionalType>().getElementType(), source);
  case c10::TypeKind::TensorType:
    if (auto *id = std::get_if<TensorId>(&arg))
      return c10::IValue(source.tensor(*id));
    if (auto scalar = asScalar(arg))
      return c10::IValue(at::native::wrapped_scalar_tensor(*scalar));
    return std::nullopt;
  case c10::TypeKind::NumberType:
    if (auto scalar = asScalar(arg))
      return c10::IValue(*scalar);
    return std::nullopt;
  case c10::TypeKind::FloatType:
    if (integer)
      return c10::IValue(static_cast<double>(*integer));
    if (auto *d = std::get_if<double>(&arg))
      return c10::IValue(*d);
    return std::nullopt;
  case c10::TypeKind::IntType:
  case c10::TypeKind::SymIntType:
  case c10::TypeKind::LayoutType:
  case c10::TypeKind::MemoryFormatType:
    return integer ? std::optional(c10::IValue(*integer)) : std::nullopt;
  case c10::TypeKind::BoolType:
    if (auto *b = std::get_if<bool>(&arg))
      return c10::IValue(*b);
    return std::nullopt;
  case c10::TypeKind::StringType:
    if (auto *s = std::get_if<std::string>(&arg))
      return c10::IValue(*s);
    return std::nullopt;
  case c10::TypeKind::ScalarTypeType:
    if (auto *dtype = std::get_if<DType>(&arg))
      return c10::IValue(scalarType(*dtype));
    return std::nullopt;
  case c10::TypeKind::DeviceObjType:
    if (std::holds_alternative<DeviceArg>(arg))
      return c10::IValue(source.device);
    return std::nullopt;
  case c10::TypeKind::ListType:
    return asList(arg, *type.expectRef<c10::ListType>().getElementType(), source);
  default:
    return std::nullopt;
  }
}

} // namespace

at::ScalarType scalarType(DType dtype) {
  switch (dtype) {
  case DType::F32:
    return at::ScalarType::Float;
  case DType::F16:
    return at::ScalarType::Half;
  case DType::BF16:
    return at::ScalarType::BFloat16;
  case DType::F64:
    return at::ScalarType::Double;
  case DType::I64:
    return at::ScalarType::Long;
  case DType::I32:
    return at::ScalarType::Int;
  case DType::I16:
    return at::ScalarType::Short;
  case DType::I8:
    return at::ScalarType::Char;
  case DType::U8:
    return at::ScalarType::Byte;
  case DType::Bool:
    return at::ScalarType::Bool;
  }
  CGC_CHECK(false && "unknown dtype");
  return at::ScalarType::Undefined;
}

Result<c10::IValue> toIValue(const AtenArg &arg, const c10::Argument &argument,
                             const ArgumentSource &source) {
  if (auto value = convert(arg, *argument.real_type(), source))
    return *std::move(value);
  return Status(Code::Unsupported, "argument '" + argument.name() + "' takes " +
                                       argument.real_type()->str() + ", the plan has " +
                                       kindName(arg));
}

} // namespace cgc::aten
