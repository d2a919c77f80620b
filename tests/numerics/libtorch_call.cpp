// LibTorchCall: finds overloads by their arguments' names and types, and interprets graphs.
#include "tests/numerics/libtorch_call.h"

#include "ir/decompose.h"
#include "ir/fallback.h"
#include "ir/text/text.h"
#include "tests/numerics/lowered_graph.h"

#include <ATen/ScalarOps.h>
#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>

#include <map>
#include <stdexcept>

namespace cgc::test {
namespace {

using ir::Arg;

/// Converts arguments as LibTorch's schemas require. nullopt: the type does not take the argument.
class Converter {
public:
  Converter(const TensorOf &tensorOf, bool wrapNumbers)
      : tensorOf_(tensorOf), wrapNumbers_(wrapNumbers) {}

  std::optional<c10::IValue> convert(const Arg &arg, const c10::Type &type) const {
    if (auto *optional = type.castRaw<c10::OptionalType>())
      return arg.isNone() ? std::optional<c10::IValue>(std::in_place)
                          : convert(arg, *optional->getElementType());
    switch (type.kind()) {
    case c10::TypeKind::TensorType:
      if (arg.isValue())
        return tensorOf_(arg.value());
      if (wrapNumbers_ && arg.asNumber())
        return at::native::wrapped_scalar_tensor(scalarOf(arg));
      return std::nullopt;
    case c10::TypeKind::IntType:
      if (const DType *dtype = arg.getIf<DType>())
        return static_cast<int64_t>(torchType(*dtype));
      return arg.is<int64_t>() ? std::optional<c10::IValue>(arg.as<int64_t>()) : std::nullopt;
    case c10::TypeKind::FloatType:
      return arg.asNumber() ? std::optional<c10::IValue>(*arg.asNumber()) : std::nullopt;
    case c10::TypeKind::BoolType:
      return arg.is<bool>() ? std::optional<c10::IValue>(arg.as<bool>()) : std::nullopt;
    case c10::TypeKind::NumberType:
      return arg.asNumber() ? std::optional<c10::IValue>(scalarOf(arg)) : std::nullopt;
    case c10::TypeKind::StringType:
      return arg.is<std::string>() ? std::optional<c10::IValue>(arg.as<std::string>())
                                   : std::nullopt;
    case c10::TypeKind::ListType:
      return arg.isList() ? list(arg.list(), *type.castRaw<c10::ListType>()->getElementType())
                          : std::nullopt;
    default:
      return std::nullopt;
    }
  }

private:
  static c10::Scalar scalarOf(const Arg &arg) {
    if (const bool *b = arg.getIf<bool>())
      return *b;
    if (const int64_t *i = arg.getIf<int64_t>())
      return *i;
    return arg.as<double>();
  }

  std::optional<c10::IValue> list(const Arg::List &args, const c10::Type &element) const {
    std::vector<c10::IValue> elements;
    for (const Arg &arg : args) {
      std::optional<c10::IValue> value = convert(arg, element);
      if (!value)
        return std::nullopt;
      elements.push_back(*std::move(value));
    }
    switch (element.kind()) {
    case c10::TypeKind::OptionalType: {
      c10::List<std::optional<at::Tensor>> list;
      for (const c10::IValue &value : elements)
        list.push_back(value.toOptional<at::Tensor>());
      return c10::IValue(list);
    }
    case c10::TypeKind::TensorType: {
      c10::List<at::Tensor> list;
      for (const c10::IValue &value : elements)
        list.push_back(value.toTensor());
      return c10::IValue(list);
    }
    case c10::TypeKind::IntType: {
      c10::List<int64_t> list;
      for (const c10::IValue &value : elements)
        list.push_back(value.toInt());
      return c10::IValue(list);
    }
    case c10::TypeKind::BoolType: {
      c10::List<bool> list;
      for (const c10::IValue &value : elements)
        list.push_back(value.toBool());
      return c10::IValue(list);
    }
    case c10::TypeKind::FloatType: {
      c10::List<double> list;
      for (const c10::IValue &value : elements)
        list.push_back(value.toDouble());
      return c10::IValue(list);
    }
    default:
      return std::nullopt;
    }
  }

  const TensorOf &tensorOf_;
  bool wrapNumbers_;
};

bool isFunctional(const c10::FunctionSchema &schema) {
  for (const c10::Argument &argument : schema.arguments())
    if (argument.alias_info() && argument.alias_info()->isWrite())
      return false;
  return true;
}

/// The functional overloads of an ATen op, by its name.
const std::vector<c10::OperatorHandle> &overloadsOf(const std::string &name) {
  static const auto all = [] {
    std::map<std::string, std::vector<c10::OperatorHandle>> byName;
    for (const c10::OperatorName &op : c10::Dispatcher::singleton().getAllOpNames()) {
      auto handle = c10::Dispatcher::singleton().findSchema(op);
      if (handle && isFunctional(handle->schema()))
        byName[op.name].push_back(*handle);
    }
    return byName;
  }();
  static const std::vector<c10::OperatorHandle> none;
  auto found = all.find(name);
  return found == all.end() ? none : found->second;
}

/// Interprets one graph.
class Interpreter {
public:
  std::vector<at::Tensor> run(const ir::Graph &graph, const std::vector<at::Tensor> &inputs) {
    size_t next = 0;
    std::vector<at::Tensor> outputs;
    for (const ir::Node &node : graph) {
      if (node.kind() == ir::NodeKind::Placeholder)
        values_[node.result()] = inputs.at(next++);
      else if (node.kind() == ir::NodeKind::Output)
        for (const Arg &arg : node.args())
          outputs.push_back(values_.at(arg.value()));
      else
        call(node);
    }
    return outputs;
  }

private:
  void call(const ir::Node &node) {
    std::vector<at::Tensor> results = resultsOf(node);
    for (unsigned i = 0; i < node.numResults(); ++i)
      values_[node.result(i)] = results.at(i).defined() ? results[i] : at::empty({0});
  }

  std::vector<at::Tensor> resultsOf(const ir::Node &node) {
    const TensorOf tensorOf = [this](const ir::Value *value) { return values_.at(value); };
    if (node.is(ir::OpKind::Fallback)) {
      const ir::FallbackName name = ir::fallbackName(node);
      auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name.op.str().c_str(),
                                                               name.overload.str().c_str());
      torch::jit::Stack stack;
      const Arg::List &args = node.arg("args").list();
      for (size_t i = 0; i < args.size(); ++i)
        stack.push_back(Converter(tensorOf, false)
                            .convert(args[i], *op.schema().arguments()[i].type())
                            .value());
      return callBoxed(op, std::move(stack));
    }
    const std::string name = "aten::" + ir::opName(node.op()).split('.').second.str();
    for (bool wrapNumbers : {false, true})
      for (const c10::OperatorHandle &overload : overloadsOf(name))
        if (auto stack = stackOf(overload, node.op(), node.args(), tensorOf, wrapNumbers))
          return callBoxed(overload, *std::move(stack));
    throw std::runtime_error("LibTorch has no " + name + " for " + ir::toString(node));
  }

  std::map<const ir::Value *, at::Tensor> values_; // Looked up, never iterated.
};

} // namespace

std::optional<torch::jit::Stack> stackOf(const c10::OperatorHandle &overload, ir::OpKind op,
                                         llvm::ArrayRef<Arg> args, const TensorOf &tensorOf,
                                         bool wrapNumbers) {
  const ir::Schema &schema = ir::opSchema(op);
  const Converter converter(tensorOf, wrapNumbers);
  std::vector<bool> used(args.size());
  torch::jit::Stack stack;
  for (const c10::Argument &argument : overload.schema().arguments()) {
    auto index = schema.find(argument.name());
    if (!index && argument.name() == "split_sizes") // Of split_with_sizes.
      index = schema.find("split_size");
    if (!index && argument.name() == "value") // Of scatter.value.
      index = schema.find("src");
    if (index)
      used[*index] = true;
    if (index && !args[*index].isNone()) {
      auto value = converter.convert(args[*index], *argument.type());
      if (!value)
        return std::nullopt;
      stack.push_back(*std::move(value));
    } else if (argument.default_value()) {
      stack.push_back(*argument.default_value());
    } else if (argument.type()->kind() == c10::TypeKind::BoolType) {
      stack.push_back(false); // Such as cudnn_enabled.
    } else if (argument.type()->kind() == c10::TypeKind::OptionalType) {
      stack.push_back(c10::IValue());
    } else {
      return std::nullopt;
    }
  }
  for (size_t i = 0; i < args.size(); ++i)
    if (!used[i] && !args[i].isNone())
      return std::nullopt;
  return stack;
}

std::vector<at::Tensor> callBoxed(const c10::OperatorHandle &overload, torch::jit::Stack stack) {
  overload.callBoxed(stack);
  std::vector<at::Tensor> results;
  for (const c10::IValue &value : stack) {
    if (value.isTensorList())
      for (const at::Tensor &tensor : value.toTensorVector())
        results.push_back(tensor);
    else
      results.push_back(value.isNone() ? at::Tensor() : value.toTensor());
  }
  return results;
}

std::vector<at::Tensor> runWithLibTorch(const std::string &text,
                                        const std::vector<at::Tensor> &inputs) {
  c10::InferenceMode guard;
  return recordWithLibTorch(text, inputs);
}

std::vector<at::Tensor> recordWithLibTorch(const std::string &text,
                                           const std::vector<at::Tensor> &inputs) {
  ir::Diagnostics diagnostics;
  auto module = ir::parseModule(text, "reference", diagnostics);
  if (!module)
    throw std::runtime_error(diagnostics.render());
  ir::Graph &graph = *module->graphs().front();
  inferTypes(graph);
  ir::decomposeCalls(graph, [](const ir::Node &node) {
    return ir::opName(node.op()).starts_with("cgc."); // LibTorch has the others.
  });
  return Interpreter().run(graph, inputs);
}

} // namespace cgc::test
