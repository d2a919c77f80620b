// libcgc_aten: implements OpProvider with LibTorch and exports its factory.
#include "runtime/aten/bound_call.h"
#include "runtime/aten/cuda.h"
#include "runtime/aten/exception_guard.h"
#include "runtime/aten/intra_op_threads.h"
#include "runtime/aten/script_model.h"
#include "runtime/base/check.h"
#include "runtime/plan/op_provider.h"

#include <optional>

namespace cgc::aten {
namespace {

class AtenProvider final : public OpProvider {
public:
  Status initialize(DeviceKind device, int index) override {
    if (device == DeviceKind::Cpu)
      return Status::ok();
    Status status = guarded([&]() -> Status {
      CGC_ASSIGN_OR_RETURN(cuda_, Cuda::open(index));
      device_ = c10::Device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(index));
      return Status::ok();
    });
    // Any error while LibTorch initializes the device is an error of the device.
    return status.code() == Code::Failed ? Status(Code::Device, status.message()) : status;
  }

  Result<std::unique_ptr<BoundCall>> bind(const AtenCall &call, const Bucket &bucket,
                                          const std::function<void *(TensorId)> &address) override {
    std::unique_ptr<BoundCall> bound;
    CGC_TRY(guarded([&]() -> Status {
      CGC_ASSIGN_OR_RETURN(bound, bindCall(call, bucket, address, device_));
      return Status::ok();
    }));
    return bound;
  }

  Status onStream(void *stream, const std::function<Status()> &body) override {
    return guarded([&] { return cuda_ ? cuda_->onStream(stream, body) : body(); });
  }

  Status withThreads(int threads, const std::function<Status()> &body) override {
    return guarded([&] {
      const IntraOpThreads scope(threads);
      return body();
    });
  }

  Result<uint64_t> beginCapture(void *stream) override {
    uint64_t pool = 0;
    CGC_TRY(guarded([&] {
      CGC_CHECK(cuda_ && "only CUDA streams are captured");
      pool = cuda_->beginPool(stream);
      return Status::ok();
    }));
    return pool;
  }

  Status endCapture(uint64_t token) override {
    return guarded([&] {
      cuda_->endPool(token);
      return Status::ok();
    });
  }

  void releasePool(uint64_t token) override {
    // The allocator fails only for an unknown pool. That would be a bug in cgc, which must not end
    // the process.
    Status status = guarded([&] {
      cuda_->releasePool(token);
      return Status::ok();
    });
    CGC_CHECK(status.isOk() && "released a pool twice");
    (void)status;
  }

  Result<std::unique_ptr<ScriptModel>> loadScript(const std::string &path,
                                                  std::optional<DType> precision) override {
    return loadScriptModel(path, precision, device_);
  }

private:
  std::optional<Cuda> cuda_;
  c10::Device device_ = c10::Device(c10::DeviceType::CPU);
};

} // namespace
} // namespace cgc::aten

extern "C" __attribute__((visibility("default"))) cgc::OpProvider *cgcOpProvider(uint32_t abi) {
  return abi == cgc::kOpProviderAbi ? new cgc::aten::AtenProvider() : nullptr;
}
