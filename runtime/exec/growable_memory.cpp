// GrowableMemory: the driver's virtual memory management, and mmap.
#include "runtime/exec/growable_memory.h"

#include "runtime/exec/buffer.h"
#include "runtime/exec/cuda_support.h"

#include <cuda.h>

#include <bit>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace cgc {
/// The functions of the driver that the class calls. libcuda is not linked.
struct GrowableMemory::Driver {
  decltype(&cuMemGetAllocationGranularity) granularity = nullptr;
  decltype(&cuMemAddressReserve) reserveAddresses = nullptr;
  decltype(&cuMemAddressFree) freeAddresses = nullptr;
  decltype(&cuMemCreate) create = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) setAccess = nullptr;

  static Result<std::shared_ptr<const Driver>> open();
};

namespace {

template <class Function> Status find(const char *name, Function &function) {
  void *found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  constexpr unsigned kVersion = 12000;
  CGC_TRY(
      CGC_CUDA(cudaGetDriverEntryPointByVersion(name, &found, kVersion, cudaEnableDefault, &result),
               std::string("cannot ask the driver for ") + name));
  if (!found)
    return {Code::Device, std::string("the NVIDIA driver has no ") + name + "; update it"};
  function = reinterpret_cast<Function>(found);
  return Status::ok();
}

/// The numbers of CUresult and cudaError_t are equal for the errors of these functions.
Status driverStatus(CUresult result, std::string_view function, std::string_view what) {
  return cudaStatus(static_cast<cudaError_t>(result), function, what);
}

CUmemAllocationProp propertiesOf(int gpu) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = gpu;
  return properties;
}

} // namespace

Result<std::shared_ptr<const GrowableMemory::Driver>> GrowableMemory::Driver::open() {
  auto d = std::make_shared<Driver>();
  CGC_TRY(find("cuMemGetAllocationGranularity", d->granularity));
  CGC_TRY(find("cuMemAddressReserve", d->reserveAddresses));
  CGC_TRY(find("cuMemAddressFree", d->freeAddresses));
  CGC_TRY(find("cuMemCreate", d->create));
  CGC_TRY(find("cuMemRelease", d->release));
  CGC_TRY(find("cuMemMap", d->map));
  CGC_TRY(find("cuMemUnmap", d->unmap));
  CGC_TRY(find("cuMemSetAccess", d->setAccess));
  return std::shared_ptr<const Driver>(d);
}

Status GrowableMemory::growOnGpu(std::byte *at, uint64_t bytes) {
  const Driver &d = *driver_;
  const CUmemAllocationProp properties = propertiesOf(gpu_);
  const std::string what = "cannot allocate " + byteText(bytes) + " of device memory";
  CUmemGenericAllocationHandle memory = 0;
  CGC_TRY(driverStatus(d.create(&memory, bytes, &properties, 0), "cuMemCreate", what));
  const auto address = reinterpret_cast<CUdeviceptr>(at);
  const char *function = "cuMemMap";
  CUresult result = d.map(address, bytes, 0, memory, 0);
  if (result == CUDA_SUCCESS) {
    CUmemAccessDesc access = {};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    function = "cuMemSetAccess";
    result = d.setAccess(address, bytes, &access, 1);
    if (result != CUDA_SUCCESS)
      (void)d.unmap(address, bytes);
  }
  (void)d.release(memory); // The mapping keeps the memory.
  // Last, because the text of a failure may not get its own memory.
  return driverStatus(result, function, what);
}

Result<GrowableMemory> GrowableMemory::reserve(DeviceKind device, int gpu, uint64_t maxBytes) {
  GrowableMemory memory;
  memory.device_ = device;
  memory.gpu_ = gpu;
  const std::string what = "cannot reserve addresses for " + byteText(maxBytes);
  if (device == DeviceKind::Cpu) {
    memory.granularity_ = uint64_t(sysconf(_SC_PAGESIZE));
    memory.reserved_ = memory.sizeFor(maxBytes);
    void *const data = mmap(nullptr, memory.reserved_, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED)
      return Status(Code::OutOfMemory, what);
    memory.data_ = static_cast<std::byte *>(data);
    return memory;
  }
  CGC_ASSIGN_OR_RETURN(memory.driver_, Driver::open());
  const Driver &d = *memory.driver_;
  const CUmemAllocationProp properties = propertiesOf(gpu);
  size_t granularity = 0;
  CGC_TRY(
      driverStatus(d.granularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
                   "cuMemGetAllocationGranularity", what));
  memory.granularity_ = granularity;
  const uint64_t bytes = memory.sizeFor(maxBytes);
  CUdeviceptr data = 0;
  CGC_TRY(driverStatus(d.reserveAddresses(&data, bytes, 0, 0, 0), "cuMemAddressReserve", what));
  memory.reserved_ = bytes;
  memory.data_ = std::bit_cast<std::byte *>(data);
  return memory;
}

GrowableMemory &GrowableMemory::operator=(GrowableMemory &&other) noexcept {
  if (this == &other)
    return *this;
  release();
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  reserved_ = std::exchange(other.reserved_, 0);
  driver_ = std::move(other.driver_);
  granularity_ = other.granularity_;
  device_ = other.device_;
  gpu_ = other.gpu_;
  return *this;
}

uint64_t GrowableMemory::sizeFor(uint64_t bytes) const {
  return (bytes + granularity_ - 1) / granularity_ * granularity_;
}

Status GrowableMemory::grow(uint64_t bytes) {
  const uint64_t size = sizeFor(bytes);
  if (size <= size_)
    return Status::ok();
  if (size > reserved_)
    return {Code::OutOfMemory,
            byteText(bytes) + " are needed, and addresses are reserved for " + byteText(reserved_)};
  if (device_ == DeviceKind::Cpu) {
    if (mprotect(data_ + size_, size - size_, PROT_READ | PROT_WRITE) != 0)
      return {Code::OutOfMemory, "cannot allocate " + byteText(size - size_) + " of host memory"};
  } else {
    CGC_TRY(growOnGpu(data_ + size_, size - size_));
  }
  size_ = size;
  return Status::ok();
}

void GrowableMemory::release() {
  if (!data_)
    return;
  if (device_ == DeviceKind::Cpu) {
    (void)munmap(data_, reserved_);
  } else {
    const auto address = reinterpret_cast<CUdeviceptr>(data_);
    if (size_ > 0)
      (void)driver_->unmap(address, size_);
    (void)driver_->freeAddresses(address, reserved_);
  }
  data_ = nullptr;
}

} // namespace cgc
