// OpProvider: the interface behind which ATen records run. The one implementation is libcgc_aten,
// opened by dlopen only when a plan holds such records.
#pragma once

#include "runtime/base/status.h"
#include "runtime/plan/plan.h"

#include <functional>
#include <memory>

namespace cgc {

/// Changes whenever this header or plan.h does in a way the other side can see.
inline constexpr uint32_t kOpProviderAbi = 2;
inline constexpr const char *kOpProviderSymbol = "cgcOpProvider";

/// One AtenCall with its op resolved and its tensors bound to memory. Borrowed memory must outlive
/// it.
class BoundCall {
public:
  virtual ~BoundCall() = default;
  /// Runs on the stream of the enclosing OpProvider::onStream (cuda) or synchronously (cpu).
  virtual Status run() = 0;
};

/// No exception leaves any of these. Contexts on several threads share one provider: all but
/// initialize may be called from any thread at any time.
class OpProvider {
public:
  virtual ~OpProvider() = default;
  /// Makes `device` usable (for cuda: opens libtorch_cuda). Once, before anything else.
  virtual Status initialize(DeviceKind device, int index) = 0;
  /// `address` gives the memory of a tensor of the bucket. Fails if the op, overload or an argument
  /// is unknown to this LibTorch.
  virtual Result<std::unique_ptr<BoundCall>>
  bind(const AtenCall &call, const Bucket &bucket,
       const std::function<void *(TensorId)> &address) = 0;
  /// Calls `body` with LibTorch's current stream set to `stream` (a cudaStream_t; ignored for cpu).
  virtual Status onStream(void *stream, const std::function<Status()> &body) = 0;
  /// Calls `body` with `threads` threads, from 1 on, for each of its records, instead of as many as
  /// the host has set. The host's setting stays. Target cpu.
  virtual Status withThreads(int threads, const std::function<Status()> &body) = 0;
  /// From here until endCapture, LibTorch's allocations on this thread's device for `stream` come
  /// from a private pool that lives until releasePool(token). Returns the token.
  virtual Result<uint64_t> beginCapture(void *stream) = 0;
  virtual Status endCapture(uint64_t token) = 0;
  virtual void releasePool(uint64_t token) = 0;
};

/// The symbol kOpProviderSymbol: a new provider, or null if `abi` is not the library's.
using OpProviderFactory = OpProvider *(*)(uint32_t abi);

} // namespace cgc
