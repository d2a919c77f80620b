// Checks of a call on LibTorch's meta device, whose tensors have sizes but no memory.
#include "runtime/aten/call_checks.h"

#include <ATen/ScalarOps.h>
#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/result_type.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <limits>

namespace cgc::aten {
namespace {

std::string describe(const at::Tensor &tensor) {
  if (!tensor.defined())
    return "None";
  std::string text = c10::toString(tensor.scalar_type());
  text += "[";
  for (int64_t i = 0; i < tensor.dim(); ++i)
    text += (i ? "," : "") + std::to_string(tensor.size(i));
  return text + "]";
}

at::Tensor metaTensor(const at::Tensor &tensor) {
  // A wrapped number takes part in type promotion as a number does, so it is passed unchanged.
  if (!tensor.defined() || tensor.unsafeGetTensorImpl()->is_wrapped_number())
    return tensor;
  return at::empty_strided(tensor.sizes(), tensor.strides(),
                           tensor.options().device(c10::DeviceType::Meta));
}

c10::IValue metaValue(const c10::IValue &value) {
  if (value.isTensor())
    return metaTensor(value.toTensor());
  if (value.isDevice())
    return c10::Device(c10::DeviceType::Meta);
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor &tensor : value.toTensorVector())
      list.push_back(metaTensor(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor> &tensor : value.toOptionalTensorVector())
      list.push_back(tensor ? std::optional(metaTensor(*tensor)) : std::nullopt);
    return list;
  }
  return value;
}

/// The dividend or divisor. A number becomes a wrapped number, which takes part in type promotion
/// as a number does.
at::Tensor operand(const c10::IValue &value) {
  return value.isTensor() ? value.toTensor() : at::native::wrapped_scalar_tensor(value.toScalar());
}

} // namespace

std::vector<at::Tensor> tensorsOf(const std::vector<c10::IValue> &results) {
  std::vector<at::Tensor> tensors;
  for (const c10::IValue &value : results) {
    if (value.isTensor())
      tensors.push_back(value.toTensor());
    else if (value.isTensorList())
      for (at::Tensor tensor : value.toTensorVector())
        tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Status checkResults(const std::vector<at::Tensor> &results,
                    const std::vector<at::Tensor> &outputs) {
  if (results.size() != outputs.size())
    return {Code::Failed, "it yields " + std::to_string(results.size()) +
                              " tensors, the plan has " + std::to_string(outputs.size())};
  for (size_t i = 0; i < results.size(); ++i) {
    const at::Tensor &result = results[i], &output = outputs[i];
    // LibTorch returns an undefined tensor for a result that was not requested; the plan has an
    // empty one.
    if (!output.defined() || (!result.defined() && output.numel() == 0))
      continue;
    if (!result.defined() || result.scalar_type() != output.scalar_type() ||
        result.sizes() != output.sizes())
      return {Code::Failed, "result " + std::to_string(i) + " is " + describe(result) +
                                ", the plan has " + describe(output) + ": compile the model again"};
  }
  return Status::ok();
}

Status checkResultSizes(const c10::OperatorHandle &op, const std::vector<c10::IValue> &args,
                        const std::vector<at::Tensor> &outputs, bool writesOut) {
  std::vector<c10::IValue> stack;
  for (const c10::IValue &arg : args)
    stack.push_back(metaValue(arg));
  std::vector<at::Tensor> written;
  for (size_t i = 0; writesOut && i < args.size(); ++i) {
    const c10::AliasInfo *alias = op.schema().arguments()[i].alias_info();
    if (alias && alias->isWrite())
      written.push_back(stack[i].toTensor());
  }
  try {
    op.callBoxed(stack);
  } catch (const c10::NotImplementedError &) {
    return Status::ok();
  }
  return checkResults(writesOut ? written : tensorsOf(stack), outputs);
}

bool dividesIntegers(const c10::OperatorHandle &op, const std::vector<c10::IValue> &args) {
  const bool truncates = op.schema().name() == "aten::div" && args.size() > 2 &&
                         args[2].isString() && args[2].toStringRef() == "trunc";
  if (!truncates && op.schema().name() != "aten::fmod")
    return false;
  const at::ScalarType type = at::result_type(operand(args[0]), operand(args[1]));
  return type == at::kInt || type == at::kLong;
}

Status checkIntegerDivision(const std::vector<c10::IValue> &args) {
  const at::Tensor dividend = operand(args[0]), divisor = operand(args[1]);
  const int64_t least = at::result_type(dividend, divisor) == at::kInt
                            ? std::numeric_limits<int32_t>::min()
                            : std::numeric_limits<int64_t>::min();
  if (at::bitwise_and(dividend.eq(least), divisor.eq(-1)).any().item<bool>())
    return {Code::Failed, "it divides " + std::to_string(least) +
                              " by -1, which traps on a CPU: check the values of the inputs"};
  return Status::ok();
}

} // namespace cgc::aten
