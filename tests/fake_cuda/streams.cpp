// The fake GPU's streams and events.
#include "tests/fake_cuda/state.h"

using namespace cgc::test::fake_cuda;

namespace {

Event &eventOf(cudaEvent_t handle) {
  return *reinterpret_cast<Event *>(handle);
}

cudaError_t createEvent(State &state, cudaEvent_t *result) {
  const auto event = std::make_shared<Event>();
  state.events.emplace(event.get(), event);
  *result = reinterpret_cast<cudaEvent_t>(event.get());
  return cudaSuccess;
}

cudaError_t recordEvent(State &state, cudaEvent_t handle, cudaStream_t stream, bool external) {
  Event &event = eventOf(handle);
  Stream &on = state.stream(stream);
  if (on.capture && !external) {
    event.recordedIn = on.capture.get();
    return on.capture->invalidated ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
  }
  event.recordedIn = nullptr;
  if (on.capture) // A node: each replay records the event again.
    return state.add(stream, [&state, event = event.shared_from_this()] {
      event->marker = std::make_shared<Marker>(Marker{nullptr, state.ticks});
    });
  auto marker = std::make_shared<Marker>(Marker{&on, 0});
  event.marker = marker;
  return state.add(stream, [&state, marker] {
    marker->stream = nullptr;
    marker->tick = state.ticks;
  });
}

void waitFor(State &state, const std::shared_ptr<Marker> &marker) {
  if (marker && marker->stream)
    state.run(*marker->stream, marker.get());
}

} // namespace

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *result, unsigned) {
  return api(__func__, [&](State &state) {
    auto *stream = new Stream;
    state.streams.insert(stream);
    *result = reinterpret_cast<cudaStream_t>(stream);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return freeingApi(__func__, [&](State &state) {
    auto *stream = reinterpret_cast<Stream *>(handle);
    if (state.streams.erase(stream) == 0)
      return cudaErrorInvalidResourceHandle;
    state.destroyed.emplace_back(stream); // Its pending work may still run.
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return api(__func__, [&](State &state) {
    Stream &stream = state.stream(handle);
    if (stream.capture) {
      stream.capture->invalidated = true;
      return cudaErrorStreamCaptureUnsupported;
    }
    state.run(stream);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  return api(__func__, [&](State &state) -> cudaError_t {
    Stream &stream = state.stream(handle);
    const Event &waited = eventOf(event);
    if (!waited.marker && !waited.recordedIn)
      return cudaSuccess; // Never recorded.
    const Capture *const capture = stream.capture.get();
    if (capture != waited.recordedIn) {
      // Work inside and outside a capture cannot depend on each other. The fake GPU also refuses a
      // fork into a second stream, which cgc never makes.
      if (capture)
        stream.capture->invalidated = true;
      return cudaErrorStreamCaptureIsolation;
    }
    if (capture)
      return cudaSuccess; // Captured nodes run in order.
    return state.add(handle, [&state, marker = waited.marker] { waitFor(state, marker); });
  });
}

cudaError_t cudaEventCreate(cudaEvent_t *result) {
  return api(__func__, [&](State &state) { return createEvent(state, result); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *result, unsigned) {
  return api(__func__, [&](State &state) { return createEvent(state, result); });
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  return freeingApi(__func__, [&](State &state) {
    return state.events.erase(&eventOf(handle)) == 1 ? cudaSuccess : cudaErrorInvalidResourceHandle;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return api(__func__, [&](State &state) { return recordEvent(state, event, stream, false); });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return api(__func__, [&](State &state) {
    return recordEvent(state, event, stream, flags & cudaEventRecordExternal);
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return api(__func__, [&](State &state) {
    if (eventOf(handle).recordedIn)
      return cudaErrorCapturedEvent;
    waitFor(state, eventOf(handle).marker);
    return cudaSuccess;
  });
}

cudaError_t cudaEventElapsedTime(float *millis, cudaEvent_t begin, cudaEvent_t end) {
  return api(__func__, [&](State &) {
    const auto &first = eventOf(begin).marker, &last = eventOf(end).marker;
    if (!first || !last)
      return cudaErrorInvalidResourceHandle;
    if (first->stream || last->stream)
      return cudaErrorNotReady;
    *millis = float(last->tick - first->tick); // Each command takes a millisecond.
    return cudaSuccess;
  });
}
