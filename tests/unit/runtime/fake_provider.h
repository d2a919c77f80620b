// FakeProvider: runs a few ATen records without LibTorch, on the host or with plain CUDA copies,
// and counts the executors' calls.
#pragma once

#include "runtime/plan/op_provider.h"

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace cgc::test {

/// An ATen record bound to memory: the addresses of its tensor arguments and outputs (null if
/// absent).
struct FakeCall {
  const AtenCall &call;
  const Bucket &bucket;
  std::vector<void *> arguments, outputs;
  /// Elements of tensor argument or output `id`.
  int64_t elements(TensorId id) const {
    int64_t n = 1;
    for (int64_t size : bucket.tensors[uint32_t(id)].sizes)
      n *= size;
    return n;
  }
};
/// A method of the file that FakeProvider::loadScript() loads. `stream` is null on cpu.
using FakeMethod = std::function<Status(std::span<const TensorView> inputs,
                                        std::span<const TensorView> outputs, void *stream)>;
/// The implementation of an op. `stream` is null on cpu.
using FakeOp = std::function<Status(const FakeCall &, void *stream)>;

class FakeProvider final : public OpProvider {
public:
  /// The ops by name. Other ops cannot be bound.
  std::map<std::string, FakeOp> ops;
  /// The methods of every file. loadScript() fails without any.
  std::map<std::string, FakeMethod, std::less<>> methods;
  bool isOtherModel = false; ///< No plan is of the files' model.

  Status initialize(DeviceKind, int) override {
    ++initialized;
    return initializeStatus;
  }
  Result<std::unique_ptr<BoundCall>> bind(const AtenCall &call, const Bucket &bucket,
                                          const std::function<void *(TensorId)> &address) override {
    const auto op = ops.find(call.op);
    if (op == ops.end())
      return Status(Code::Unsupported, "this LibTorch has no " + call.op);
    FakeCall bound{call, bucket, {}, {}};
    for (const AtenArg &arg : call.args)
      if (const auto *id = std::get_if<TensorId>(&arg))
        bound.arguments.push_back(address(*id));
    for (TensorId id : call.outputs)
      bound.outputs.push_back(id == kNoTensor ? nullptr : address(id));
    return std::unique_ptr<BoundCall>(new Bound(*this, op->second, std::move(bound)));
  }
  Status onStream(void *stream, const std::function<Status()> &body) override {
    void *const before = std::exchange(current(), stream);
    Status status = body();
    current() = before;
    return status;
  }
  Status withThreads(int number, const std::function<Status()> &body) override {
    threads.push_back(number);
    return body();
  }
  Result<uint64_t> beginCapture(void *) override {
    ++pools;
    ++captures;
    return uint64_t(++token_);
  }
  Status endCapture(uint64_t) override {
    --captures;
    return Status::ok();
  }
  void releasePool(uint64_t) override { --pools; }
  Result<std::unique_ptr<ScriptModel>> loadScript(const std::string &path,
                                                  std::optional<DType> precision) override {
    if (methods.empty())
      return Status(Code::InvalidFile, path + ": this is no TorchScript");
    precisions.push_back(precision);
    return std::unique_ptr<ScriptModel>(new Model(*this));
  }

  Status initializeStatus;
  std::vector<int> threads;                     ///< The thread count of each run on target cpu.
  std::vector<std::optional<DType>> precisions; ///< That of each file that was loaded.
  std::atomic<int> initialized = 0, pools = 0, captures = 0, runs = 0;

private:
  /// The current stream, which belongs to the thread as in LibTorch.
  static void *&current() {
    thread_local void *stream = nullptr;
    return stream;
  }
  struct Bound final : BoundCall {
    Bound(FakeProvider &provider, const FakeOp &op, FakeCall call)
        : provider(provider), op(op), call(std::move(call)) {}
    Status run() override {
      ++provider.runs;
      return op(call, current());
    }
    FakeProvider &provider;
    const FakeOp &op;
    FakeCall call;
  };

  struct Model final : ScriptModel {
    explicit Model(FakeProvider &provider) : provider(provider) {}
    bool hasMethod(std::string_view name) const override { return provider.methods.contains(name); }
    Status checkPlan(const PlanData &) const override {
      return provider.isOtherModel ? Status(Code::Usage, "weight 'w' of the plan is [4], and the "
                                                         "model has [5]")
                                   : Status::ok();
    }
    Status run(const Entry &entry, std::span<const TensorView> inputs,
               std::span<const TensorView> outputs) override {
      return provider.methods.at(entry.name)(inputs, outputs, current());
    }
    FakeProvider &provider;
  };

  std::atomic<uint64_t> token_ = 0;
};

} // namespace cgc::test
