// The fake GPU's copies and memsets.
#include "tests/fake_cuda/state.h"

namespace cgc::test::fake_cuda {
namespace {

/// Whether both addresses are in the kind of memory that `kind` says.
bool fits(const State &state, const Copy &copy) {
  const bool toDevice = copy.toDevice >= 0, fromDevice = copy.fromDevice >= 0,
             toHost = !toDevice || state.isManaged(copy.to, copy.toBytes()),
             fromHost = !fromDevice || state.isManaged(copy.from, copy.fromBytes());
  switch (copy.kind) {
  case cudaMemcpyHostToHost:
    return toHost && fromHost;
  case cudaMemcpyHostToDevice:
    return toDevice && fromHost;
  case cudaMemcpyDeviceToHost:
    return toHost && fromDevice;
  case cudaMemcpyDeviceToDevice:
    return toDevice && fromDevice;
  case cudaMemcpyDefault:
    return true;
  }
  return false;
}

} // namespace

cudaError_t State::check(Copy &copy) const {
  if (copy.kind < cudaMemcpyHostToHost || copy.kind > cudaMemcpyDefault)
    return cudaErrorInvalidMemcpyDirection;
  if (copy.width > copy.toPitch || copy.width > copy.fromPitch)
    return cudaErrorInvalidPitchValue;
  copy.toDevice = deviceOf(copy.to, copy.toBytes());
  copy.fromDevice = deviceOf(copy.from, copy.fromBytes());
  return fits(*this, copy) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t State::check(const Fill &fill) const {
  const bool isElement = fill.elementSize == 1 || fill.elementSize == 2 || fill.elementSize == 4;
  return isElement && (fill.height == 1 || fill.width * fill.elementSize <= fill.pitch) &&
                 deviceOf(fill.to, fill.bytes()) >= 0
             ? cudaSuccess
             : cudaErrorInvalidValue;
}

} // namespace cgc::test::fake_cuda

using namespace cgc::test::fake_cuda;

namespace {

cudaError_t copy2D(State &state, void *to, size_t toPitch, const void *from, size_t fromPitch,
                   size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t handle) {
  if (width == 0 || height == 0)
    return cudaSuccess;
  Copy copy{static_cast<std::byte *>(to),
            toPitch,
            static_cast<const std::byte *>(from),
            fromPitch,
            width,
            height,
            kind,
            -1,
            -1,
            nullptr};
  if (const cudaError_t error = state.check(copy); error != cudaSuccess)
    return error;
  const std::shared_ptr<Stream> stream = state.find(handle);
  if (!stream)
    return cudaErrorInvalidResourceHandle;
  const auto isPageable = [&](const void *data, uint64_t bytes) {
    return !state.findAllocation(data, bytes);
  };
  const bool toPageable = isPageable(to, copy.toBytes());
  // A copy from pageable memory returns after it has read that memory.
  if (isPageable(from, copy.fromBytes()) && !stream->capture) {
    copy.staged =
        std::make_shared<const std::vector<std::byte>>(copy.from, copy.from + copy.fromBytes());
    copy.from = copy.staged->data();
  }
  if (const cudaError_t error = state.submit(handle, std::move(copy)); error != cudaSuccess)
    return error;
  // A copy to pageable memory returns after it has written that memory.
  if (toPageable && !stream->capture) {
    state.currentCall().waits = true;
    state.complete(State::endOf(stream));
  }
  return state.sticky;
}

cudaError_t fill2D(State &state, void *to, size_t pitch, int value, size_t width, size_t height,
                   cudaStream_t stream) {
  if (width == 0 || height == 0)
    return cudaSuccess;
  const Fill fill{static_cast<std::byte *>(to), pitch, unsigned(value), 1, width, height};
  const cudaError_t error = state.check(fill);
  return error == cudaSuccess ? state.submit(stream, fill) : error;
}

/// A function that returns when its work on the legacy stream is done.
template <class Body> cudaError_t waiting(State &state, const Body &enqueueWork) {
  const std::shared_ptr<Stream> &legacy = state.devices[thisThread.device].legacy;
  if (const cudaError_t error = state.refuseImplicit(*legacy); error != cudaSuccess)
    return error;
  if (const cudaError_t error = state.refuseUnsafe(); error != cudaSuccess)
    return error;
  if (const cudaError_t error = enqueueWork(); error != cudaSuccess)
    return error;
  state.currentCall().waits = true;
  state.complete(State::endOf(legacy));
  return state.sticky;
}

bool areOn(const State &state, const void *to, int toDevice, const void *from, int fromDevice,
           size_t bytes) {
  return state.deviceOf(to, bytes) == toDevice && state.deviceOf(from, bytes) == fromDevice;
}

} // namespace

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return api(__func__, stream, [&](State &state) {
    return copy2D(state, to, bytes, from, bytes, bytes, 1, kind, stream);
  });
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t toPitch, const void *from, size_t fromPitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  return api(__func__, stream, [&](State &state) {
    return copy2D(state, to, toPitch, from, fromPitch, width, height, kind, stream);
  });
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
  return api(__func__, [&](State &state) {
    return waiting(state, [&] {
      return copy2D(state, to, bytes, from, bytes, bytes, 1, kind, cudaStreamLegacy);
    });
  });
}

cudaError_t cudaMemcpyPeerAsync(void *to, int toDevice, const void *from, int fromDevice,
                                size_t bytes, cudaStream_t stream) {
  return api(__func__, stream, [&](State &state) {
    if (toDevice < 0 || toDevice >= state.deviceCount || fromDevice < 0 ||
        fromDevice >= state.deviceCount)
      return cudaErrorInvalidDevice;
    if (bytes > 0 && !areOn(state, to, toDevice, from, fromDevice, bytes))
      return cudaErrorInvalidValue;
    return copy2D(state, to, bytes, from, bytes, bytes, 1, cudaMemcpyDeviceToDevice, stream);
  });
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
  return api(__func__, stream,
             [&](State &state) { return fill2D(state, to, bytes, value, bytes, 1, stream); });
}

cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return api(__func__, stream,
             [&](State &state) { return fill2D(state, to, pitch, value, width, height, stream); });
}

cudaError_t cudaMemset(void *to, int value, size_t bytes) {
  return api(__func__, [&](State &state) {
    return waiting(state,
                   [&] { return fill2D(state, to, bytes, value, bytes, 1, cudaStreamLegacy); });
  });
}
