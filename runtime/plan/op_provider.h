// OpProvider: the interface through which the runtime runs ATen records. Its only implementation is
// libcgc_aten, which is opened with dlopen for a plan that has such records.
#pragma once

#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"
#include "runtime/plan/plan.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace cgc {

/// The version of this interface. It changes whenever this header or plan.h changes in a way that
/// the provider can observe.
inline constexpr uint32_t kOpProviderAbi = 4;
inline constexpr const char *kOpProviderSymbol = "cgcOpProvider";

/// An AtenCall with its op resolved and its tensors bound to memory, which must outlive it.
class BoundCall {
public:
  virtual ~BoundCall() = default;
  /// Enqueues the op on the stream of the enclosing OpProvider::onStream (cuda), or runs it before
  /// returning (cpu).
  virtual Status run() = 0;
};

/// A TorchScript file that LibTorch runs on the provider's device. Any thread may call any function
/// at any time.
class ScriptModel {
public:
  virtual ~ScriptModel() = default;
  virtual bool hasMethod(std::string_view name) const = 0;
  /// Usage, naming the first difference, if the plan was compiled from another model: if a method
  /// has no parameter for an input of its entry, or if a weight that the compiler has not computed
  /// is no parameter or buffer of the model with the same sizes.
  virtual Status checkPlan(const PlanData &plan) const = 0;
  /// Runs the method that `entry` is named after, with the names of its inputs, and copies its
  /// results, flattened, to `outputs`. Views are dense, in host memory or on the provider's device.
  /// On cuda, enqueues on the stream of the enclosing OpProvider::onStream; copies to and from host
  /// memory wait. Usage, before anything is written, if the results differ from `outputs` in number
  /// or sizes; Failed if they differ in dtype.
  virtual Status run(const Entry &entry, std::span<const TensorView> inputs,
                     std::span<const TensorView> outputs) = 0;
};

/// Runs ATen records. No function throws. Contexts on several threads share one provider: every
/// function except initialize may be called from any thread at any time.
class OpProvider {
public:
  virtual ~OpProvider() = default;
  /// Makes `device` usable; for cuda, opens libtorch_cuda. Called once, before any other function.
  virtual Status initialize(DeviceKind device, int index) = 0;
  /// Resolves `call`. `address` returns the memory of a tensor of the bucket. Fails if the op, its
  /// overload or an argument is unknown to this LibTorch.
  virtual Result<std::unique_ptr<BoundCall>>
  bind(const AtenCall &call, const Bucket &bucket,
       const std::function<void *(TensorId)> &address) = 0;
  /// Calls `body` with LibTorch's current stream set to `stream`, a cudaStream_t. `stream` is
  /// ignored for cpu.
  virtual Status onStream(void *stream, const std::function<Status()> &body) = 0;
  /// Calls `body` with `threads` (at least 1) intra-op threads for each record, instead of the
  /// number that the host has set. The host's setting does not change. Target cpu only.
  virtual Status withThreads(int threads, const std::function<Status()> &body) = 0;
  /// Until endCapture, LibTorch's allocations on this thread's device for `stream` come from a
  /// private pool, which lives until releasePool(token). Returns the token.
  virtual Result<uint64_t> beginCapture(void *stream) = 0;
  virtual Status endCapture(uint64_t token) = 0;
  virtual void releasePool(uint64_t token) = 0;
  /// Loads a TorchScript file to the device, in `precision` if the plan was converted to one
  /// (PlanData::precision). InvalidFile if LibTorch cannot read it.
  virtual Result<std::unique_ptr<ScriptModel>> loadScript(const std::string &path,
                                                          std::optional<DType> precision) = 0;
};

/// The type of the symbol kOpProviderSymbol: returns a new provider, which the caller owns, or null
/// if `abi` is not the library's.
using OpProviderFactory = OpProvider *(*)(uint32_t abi);

} // namespace cgc
