// HostFunction: a function of the host program that a plan calls in place of a submodule.
#pragma once

#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"

#include <functional>
#include <span>
#include <string>

namespace cgc {

/// Computes `outputs` from `inputs`. All are dense and lie in the memory of the device that runs
/// the plan. The views are valid during the call, their memory until the work that the function
/// enqueued on `stream` is complete. The function must not write to `inputs`, and must not call the
/// session or context that calls it, nor run another plan of the same memory pool. `stream` is the
/// cudaStream_t of the run, and null on the host. On a GPU, the function either enqueues its work
/// on `stream` or waits for its work before it returns; it leaves the thread's current device as it
/// is.
///
/// It is called by the thread that runs the bucket, hence by several threads at once if several
/// contexts run. An error or an exception fails the run; the context can run again.
using HostFunction = std::function<Status(std::span<const TensorView> inputs,
                                          std::span<const TensorView> outputs, void *stream)>;

/// A host function with the name by which plans call it: the path of the submodule and its method,
/// as in "visual.adapter.forward". `cgc inspect` lists the names.
struct NamedHostFunction {
  std::string name;
  HostFunction function;
};

} // namespace cgc
