// Cuda: finds libtorch_cuda, sets streams, and directs allocations during a capture to private
// pools.
#include "runtime/aten/cuda.h"

#include "runtime/base/libtorch.h"

#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <torch/headeronly/version.h>

#include <dlfcn.h>

namespace cgc::aten {
namespace {

using c10::cuda::CUDACachingAllocator::CUDAAllocator;

using NewPoolId = c10::MempoolId_t (*)();

CUDAAllocator &allocatorAt(void *symbol) {
  return *static_cast<std::atomic<CUDAAllocator *> *>(symbol)->load();
}

/// LibTorch's id of a graph pool: {0, number}.
c10::MempoolId_t poolId(uint64_t pool) {
  return {0, pool};
}

} // namespace

Result<Cuda> Cuda::open(int device) {
  CGC_ASSIGN_OR_RETURN(void *const library, openLibTorchCuda(reinterpret_cast<const void *>(
                                                &c10::Dispatcher::realSingleton)));
  void *allocator = dlsym(library, "_ZN3c104cuda20CUDACachingAllocator9allocatorE");
  void *newPoolId = dlsym(library, "_ZN2at4cuda17graph_pool_handleEv");
  if (!allocator || !newPoolId)
    return Status(Code::Device, std::string("LibTorch's CUDA library is of another version than "
                                            "cgc was built for: use LibTorch ") +
                                    TORCH_VERSION);
  // LibTorch looks for its CUDA library once, when CUDA is first needed, and keeps the answer.
  if (!at::detail::getCUDAHooks().hasCUDART())
    return Status(Code::Device, "this process used LibTorch before it opened LibTorch's CUDA "
                                "library, and LibTorch now stays on the CPU: create the engine of "
                                "a cuda plan first");
  c10::impl::VirtualGuardImpl guard(c10::DeviceType::CUDA);
  if (device < 0 || device >= guard.deviceCount())
    return Status(Code::Device, "LibTorch sees " + std::to_string(guard.deviceCount()) +
                                    " CUDA devices, none with number " + std::to_string(device));
  at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
  return Cuda(c10::Device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(device)), allocator,
              newPoolId);
}

Status Cuda::onStream(void *stream, const std::function<Status()> &body) const {
  c10::impl::VirtualGuardImpl guard(c10::DeviceType::CUDA);
  // The id of a stream that LibTorch did not create is its handle (c10/cuda/CUDAStream.cpp).
  c10::Stream wanted(c10::Stream::UNSAFE, device_, reinterpret_cast<c10::StreamId>(stream));
  struct Restore {
    const c10::impl::VirtualGuardImpl &guard;
    c10::Device device;
    c10::Stream stream;
    ~Restore() {
      guard.exchangeStream(stream);
      guard.uncheckedSetDevice(device);
    }
  } restore{guard, guard.exchangeDevice(device_), guard.exchangeStream(wanted)};
  return body();
}

uint64_t Cuda::beginPool(void *stream) const {
  c10::MempoolId_t id = reinterpret_cast<NewPoolId>(newPoolId_)();
  TORCH_INTERNAL_ASSERT(id == poolId(id.second));
  allocatorAt(allocator_).beginAllocateToPool(device_.index(), id, [stream](cudaStream_t s) {
    return s == stream;
  });
  return id.second;
}

void Cuda::endPool(uint64_t pool) const {
  allocatorAt(allocator_).endAllocateToPool(device_.index(), poolId(pool));
}

void Cuda::releasePool(uint64_t pool) const {
  allocatorAt(allocator_).releasePool(device_.index(), poolId(pool));
}

} // namespace cgc::aten
