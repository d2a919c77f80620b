// bindCall: finds the overload, builds its boxed arguments once, and calls it any number of times.
#include "runtime/aten/bound_call.h"

#include "runtime/aten/aten_arguments.h"
#include "runtime/aten/call_checks.h"
#include "runtime/aten/exception_guard.h"
#include "runtime/aten/full_precision.h"
#include "runtime/plan/aten_ops.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mul.h>
#include <c10/core/InferenceMode.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <optional>

namespace cgc::aten {
namespace {

std::string nameOf(const AtenCall &call) {
  return call.overload.empty() ? call.op : call.op + "." + call.overload;
}

/// Copies a result to its slot. For equal layouts LibTorch's copy_ becomes a memcpy node in a
/// captured graph; an elementwise kernel instead made replays up to 1 % faster on an H200
/// (docs/log/2026-11-21-result-copies.md). Multiplying by one is exact. A bool is copied, because
/// mul would make it an int.
void copyInto(at::Tensor &output, const at::Tensor &result) {
  if (output.is_cuda() && output.strides() == result.strides() && output.scalar_type() != at::kBool)
    at::mul_out(output, result, at::native::wrapped_scalar_tensor(1));
  else
    output.copy_(result);
}

/// Whether the op writes the argument: `out`, or the `self` of an in-place op.
bool isWritten(const c10::Argument &argument) {
  return argument.alias_info() && argument.alias_info()->isWrite();
}

bool hasF32(const std::vector<c10::IValue> &args) {
  return std::ranges::any_of(args, [](const c10::IValue &arg) {
    return arg.isTensor() && arg.toTensor().scalar_type() == at::kFloat;
  });
}

/// The position of `half_to_float` if it is true and the call runs on the CPU. There LibTorch's
/// softmax does not widen its f16 argument itself, as on a GPU, so that the argument has to be
/// converted first.
std::optional<int> widenedOnCpu(const c10::OperatorHandle &op, const std::vector<c10::IValue> &args,
                                bool isCpu) {
  const std::optional<int> position = op.schema().argumentIndexWithName("half_to_float");
  return isCpu && position && args[*position].toBool() ? position : std::nullopt;
}

/// Where the op has the arguments that it writes, in order.
std::vector<size_t> writtenArguments(const c10::OperatorHandle &op) {
  std::vector<size_t> positions;
  for (size_t i = 0; i < op.schema().arguments().size(); ++i)
    if (isWritten(op.schema().arguments()[i]))
      positions.push_back(i);
  return positions;
}

bool hasOut(const c10::OperatorHandle &op) {
  return std::ranges::any_of(op.schema().arguments(),
                             [](const c10::Argument &argument) { return argument.is_out(); });
}

/// Whether the elements of `a` and `b` lie in the same order and distance.
bool haveEqualLayouts(const at::Tensor &a, const at::Tensor &b) {
  if (a.sizes() != b.sizes())
    return false;
  for (int64_t d = 0; d < a.dim() && a.numel() > 0; ++d)
    if (a.size(d) > 1 && a.stride(d) != b.stride(d))
      return false;
  return true;
}

class DispatcherCall final : public BoundCall {
public:
  DispatcherCall(std::string name, c10::OperatorHandle op, std::vector<c10::IValue> args,
                 std::vector<at::Tensor> outputs, bool writesOut, bool fullPrecision, bool isCpu)
      : name_(std::move(name)), op_(std::move(op)), args_(std::move(args)),
        outputs_(std::move(outputs)), writesOut_(writesOut), isDirect_(!hasOut(op_)),
        written_(writtenArguments(op_)), fullPrecision_(fullPrecision),
        dividesIntegers_(isCpu && dividesIntegers(op_, args_)),
        widened_(widenedOnCpu(op_, args_, isCpu)) {
    for (const at::Tensor &output : outputs_) {
      data_.push_back(output.defined() ? output.data_ptr() : nullptr);
      sizes_.push_back(output.defined() ? output.sizes().vec() : std::vector<int64_t>());
    }
  }

  Status run() override {
    return guarded([&]() -> Status {
             c10::InferenceMode guard;
             if (dividesIntegers_)
               CGC_TRY(checkIntegerDivision(args_));
             std::optional<FullPrecision> fullPrecision;
             if (fullPrecision_)
               fullPrecision.emplace();
             std::vector<c10::IValue> stack = args_;
             if (widened_) {
               stack[0] = stack[0].toTensor().to(at::kFloat);
               stack[*widened_] = false;
             }
             if (writesOut_)
               return isDirect_ ? write(stack) : writeFresh(stack);
             op_.callBoxed(stack);
             return copyResults(stack);
           })
        .withContext(name_);
  }

private:
  /// Failed if LibTorch resized an output: it does that to an `out` of the wrong size instead of
  /// refusing it.
  Status write(std::vector<c10::IValue> &stack) const {
    op_.callBoxed(stack);
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (outputs_[i].data_ptr() != data_[i] || outputs_[i].sizes() != sizes_[i])
        return {Code::Failed, "result " + std::to_string(i) +
                                  " has other sizes than in the plan: compile the model again"};
    return Status::ok();
  }

  /// The same with fresh tensors, which are copied. LibTorch gives them the layout that it would
  /// give a result. Some of its kernels write that layout whatever the strides of `out` are, among
  /// them pooling of channels-last tensors on a GPU. So an `out` of another layout is not theirs to
  /// write. The first call finds out.
  Status writeFresh(std::vector<c10::IValue> &stack) {
    std::vector<at::Tensor> fresh;
    for (const at::Tensor &output : outputs_)
      fresh.push_back(at::empty({0}, output.options()));
    for (size_t i = 0; i < fresh.size(); ++i)
      stack[written_[i]] = fresh[i];
    op_.callBoxed(stack);
    CGC_TRY(checkResults(fresh, outputs_));
    isDirect_ = std::ranges::equal(fresh, outputs_, haveEqualLayouts);
    for (size_t i = 0; i < fresh.size(); ++i)
      copyInto(outputs_[i], fresh[i]);
    return Status::ok();
  }

  Status copyResults(const std::vector<c10::IValue> &stack) {
    const std::vector<at::Tensor> results = tensorsOf(stack);
    CGC_TRY(checkResults(results, outputs_));
    for (size_t i = 0; i < results.size(); ++i)
      if (outputs_[i].defined() && results[i].defined())
        copyInto(outputs_[i], results[i]);
    return Status::ok();
  }

  std::string name_;
  c10::OperatorHandle op_;
  std::vector<c10::IValue> args_;
  std::vector<at::Tensor> outputs_; ///< Undefined for results that the plan does not need.
  std::vector<void *> data_;
  std::vector<std::vector<int64_t>> sizes_;
  bool writesOut_;
  /// Whether the op may write the outputs themselves: it works in place, or their layout fits.
  bool isDirect_;
  std::vector<size_t> written_; ///< Where `args_` has the outputs, if writesOut_.
  bool fullPrecision_;
  bool dividesIntegers_; ///< Only on the CPU; a GPU does not trap.
  std::optional<int> widened_;
};

} // namespace

Result<std::unique_ptr<BoundCall>> bindCall(const AtenCall &call, const Bucket &bucket,
                                            const std::function<void *(TensorId)> &address,
                                            c10::Device device) {
  c10::InferenceMode guard;
  auto unsupported = [&](const std::string &what) {
    return Status(Code::Unsupported, nameOf(call) + ": " + what);
  };
  if (!isAllowedAtenOp(call.op))
    return unsupported("it is not among the ops that a plan may call: this cgc did not write the "
                       "plan; compile the model again");
  auto op = c10::Dispatcher::singleton().findSchema({call.op, call.overload});
  if (!op)
    return unsupported("LibTorch " TORCH_VERSION
                       " has no such op: run the plan with the version that it was compiled for");

  auto tensor = [&](TensorId id) {
    const TensorRef &ref = bucket.tensors[static_cast<uint32_t>(id)];
    auto options = c10::TensorOptions(device).dtype(scalarType(ref.dtype));
    return at::for_blob(address(id), ref.sizes)
        .strides(c10::IntArrayRef(ref.strides))
        .options(options)
        .target_device(device)
        .make_tensor();
  };
  std::vector<at::Tensor> outputs;
  for (TensorId id : call.outputs)
    outputs.push_back(id == kNoTensor ? at::Tensor() : tensor(id));

  std::vector<c10::IValue> args;
  size_t nextArg = 0, nextOutput = 0;
  for (const c10::Argument &argument : op->schema().arguments()) {
    if (isWritten(argument)) {
      if (!call.writesOut)
        return unsupported("it writes its argument '" + argument.name() +
                           "', which the plan does not provide for");
      if (nextOutput == outputs.size() || !outputs[nextOutput].defined())
        return unsupported("the plan has no tensor for '" + argument.name() + "'");
      args.emplace_back(outputs[nextOutput++]);
      continue;
    }
    if (nextArg == call.args.size())
      return unsupported("the plan has " + std::to_string(call.args.size()) +
                         " arguments, none for '" + argument.name() + "'");
    auto value = toIValue(call.args[nextArg++], argument, {tensor, device});
    if (!value)
      return value.status().withContext(nameOf(call));
    args.push_back(*std::move(value));
  }
  if (nextArg != call.args.size())
    return unsupported("it takes " + std::to_string(nextArg) + " arguments, the plan has " +
                       std::to_string(call.args.size()));
  if (call.writesOut && nextOutput != outputs.size())
    return unsupported("it writes " + std::to_string(nextOutput) + " tensors, the plan has " +
                       std::to_string(outputs.size()));
  CGC_TRY(guarded([&] {
            return checkResultSizes(*op, args, outputs, call.writesOut);
          }).withContext(nameOf(call)));
  bool fullPrecision = device.is_cuda() && multipliesMatrices(call.op) && hasF32(args);
  if (fullPrecision && isConvolution(call.op) && outputs.size() == 1 && outputs[0].defined()) {
    withoutTf32(*op, args, outputs[0]);
    fullPrecision = false; // The argument allow_tf32 replaces the guard.
  }
  return std::unique_ptr<BoundCall>(
      std::make_unique<DispatcherCall>(nameOf(call), *op, std::move(args), std::move(outputs),
                                       call.writesOut, fullPrecision, device.is_cpu()));
}

} // namespace cgc::aten
