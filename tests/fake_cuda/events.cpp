// The fake GPU's events.
#include "tests/fake_cuda/state.h"

namespace cgc::test::fake_cuda {

std::shared_ptr<Event> State::find(cudaEvent_t handle) {
  const auto at = events.find(reinterpret_cast<Event *>(handle));
  return at == events.end() ? nullptr : at->second;
}

namespace {

cudaError_t createEvent(State &state, cudaEvent_t *result, unsigned flags) {
  state.currentCall().allocates = true;
  const auto event = std::make_shared<Event>();
  event->device = thisThread.device;
  event->hasTiming = !(flags & cudaEventDisableTiming);
  state.events.emplace(event.get(), event);
  *result = handleOf<cudaEvent_t>(event.get());
  return cudaSuccess;
}

cudaError_t recordEvent(State &state, cudaEvent_t handle, cudaStream_t streamHandle,
                        unsigned flags) {
  const std::shared_ptr<Event> event = state.find(handle);
  const std::shared_ptr<Stream> stream = state.find(streamHandle);
  if (!event || !stream || event->device != stream->device)
    return cudaErrorInvalidResourceHandle;
  if (const cudaError_t error = state.refuseImplicit(*stream); error != cudaSuccess)
    return error;
  if (stream->capture && stream->capture->isInvalidated)
    return cudaErrorStreamCaptureInvalidated;
  if (stream->capture && (flags & cudaEventRecordExternal))
    return state.submit(streamHandle, EventRecord{event}); // Each replay records it.
  if (stream->capture) {
    event->capture = stream->capture;
    event->dependencies = stream->dependencies;
    return cudaSuccess;
  }
  event->capture = nullptr;
  event->record = std::make_shared<Record>();
  state.push(stream, [&state, record = event->record] { record->tick = ++state.ticks; });
  event->record->point = State::endOf(stream);
  return cudaSuccess;
}

/// Makes `stream` wait for an event that was last recorded inside a capture: the stream joins the
/// capture, or the capture gets another edge.
cudaError_t waitForCaptured(Stream &stream, const Event &event) {
  const std::shared_ptr<Capture> &capture = event.capture;
  if (capture->hasEnded) {
    if (stream.capture)
      stream.capture->isInvalidated = true;
    return cudaErrorCapturedEvent;
  }
  if (stream.capture && stream.capture != capture) {
    stream.capture->isInvalidated = capture->isInvalidated = true;
    return cudaErrorStreamCaptureMerge;
  }
  if (capture->isInvalidated)
    return cudaErrorStreamCaptureInvalidated;
  if (stream.isLegacy) {
    capture->isInvalidated = true;
    return cudaErrorStreamCaptureImplicit;
  }
  if (!stream.capture) {
    stream.capture = capture;
    stream.dependencies.clear();
    capture->streams.insert(&stream);
  }
  State::addDependencies(stream, event.dependencies);
  return cudaSuccess;
}

cudaError_t waitEvent(State &state, cudaStream_t streamHandle, cudaEvent_t handle, unsigned flags) {
  const std::shared_ptr<Event> event = state.find(handle);
  const std::shared_ptr<Stream> stream = state.find(streamHandle);
  if (!event || !stream)
    return cudaErrorInvalidResourceHandle;
  if (event->capture)
    return waitForCaptured(*stream, *event);
  if (const cudaError_t error = state.refuseImplicit(*stream); error != cudaSuccess)
    return error;
  if (stream->capture && stream->capture->isInvalidated)
    return cudaErrorStreamCaptureInvalidated;
  if (stream->capture && (flags & cudaEventWaitExternal))
    return state.submit(streamHandle, EventWait{event});
  if (!event->record)
    return cudaSuccess; // An event that was never recorded stands for no work.
  if (stream->capture) {
    stream->capture->isInvalidated = true;
    return cudaErrorStreamCaptureIsolation;
  }
  state.push(stream, [] {}, {event->record->point});
  return cudaSuccess;
}

/// Calls `wait` with the work before the event, if that may be waited for.
template <class Wait> cudaError_t waitFor(State &state, cudaEvent_t handle, const Wait &wait) {
  const std::shared_ptr<Event> event = state.find(handle);
  if (!event)
    return cudaErrorInvalidResourceHandle;
  if (event->capture) {
    event->capture->isInvalidated = true;
    return cudaErrorCapturedEvent;
  }
  if (const cudaError_t error = state.refuseUnsafe(); error != cudaSuccess)
    return error;
  return wait(event->record ? event->record->point : Point());
}

} // namespace
} // namespace cgc::test::fake_cuda

using namespace cgc::test::fake_cuda;

cudaError_t cudaEventCreate(cudaEvent_t *result) {
  return api(__func__, [&](State &state) { return createEvent(state, result, 0); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *result, unsigned flags) {
  return api(__func__, [&](State &state) { return createEvent(state, result, flags); });
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  return freeingApi(__func__, [&](State &state) {
    state.currentCall().allocates = true;
    return state.events.erase(reinterpret_cast<Event *>(handle)) == 1
               ? cudaSuccess
               : cudaErrorInvalidResourceHandle;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return api(__func__, stream, [&](State &state) { return recordEvent(state, event, stream, 0); });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return api(__func__, stream,
             [&](State &state) { return recordEvent(state, event, stream, flags); });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return api(__func__, stream,
             [&](State &state) { return waitEvent(state, stream, event, flags); });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return api(__func__, [&](State &state) {
    return waitFor(state, handle, [&](const Point &point) {
      state.currentCall().waits = true;
      state.complete(point);
      return state.sticky;
    });
  });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return api(__func__, [&](State &state) {
    return waitFor(state, handle, [&](const Point &point) { return state.query(point); });
  });
}

cudaError_t cudaEventElapsedTime(float *millis, cudaEvent_t begin, cudaEvent_t end) {
  return api(__func__, [&](State &state) {
    const std::shared_ptr<Event> first = state.find(begin), last = state.find(end);
    if (!first || !last || !first->record || !last->record || !first->hasTiming ||
        !last->hasTiming || first->device != last->device)
      return cudaErrorInvalidResourceHandle;
    if (!first->record->point.isDone() || !last->record->point.isDone())
      return cudaErrorNotReady;
    *millis = float(last->record->tick) - float(first->record->tick);
    return cudaSuccess;
  });
}
