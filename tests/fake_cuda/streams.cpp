// The fake GPU's streams: their order, and the functions that wait for them.
#include "tests/fake_cuda/state.h"

#include <algorithm>

namespace cgc::test::fake_cuda {

std::shared_ptr<Stream> State::find(cudaStream_t handle) {
  if (!handle || handle == cudaStreamLegacy)
    return devices[thisThread.device].legacy;
  const auto at = streams.find(reinterpret_cast<Stream *>(handle));
  return at == streams.end() ? nullptr : at->second;
}

void State::push(const std::shared_ptr<Stream> &stream, std::function<void()> work,
                 std::vector<Point> after) {
  if (stream->isLegacy) {
    for (const auto &[key, other] : streams)
      if (other->isBlocking && other->device == stream->device && !other->capture)
        after.push_back(endOf(other));
  } else if (stream->isBlocking) {
    after.push_back(endOf(devices[stream->device].legacy));
  }
  std::erase_if(after, [](const Point &point) { return point.isDone(); });
  stream->queue.push_back({std::move(after), std::move(work)});
  ++stream->enqueued;
}

void State::step(Stream &stream) {
  if (stream.isBusy) {
    progressed.wait(mutex);
    return;
  }
  Command command = std::move(stream.queue.front());
  stream.queue.pop_front();
  stream.isBusy = true;
  stream.wasQueried = false;
  for (const Point &point : command.after)
    complete(point);
  // After a sticky fault the device runs nothing more.
  if (sticky == cudaSuccess)
    command.work();
  stream.isBusy = false;
  ++stream.completed;
  progressed.notify_all();
}

void State::complete(const Point &point) {
  while (!point.isDone())
    step(*point.stream);
}

void State::completeDevice(int device) {
  for (;;) {
    std::vector<std::shared_ptr<Stream>> working;
    const auto consider = [&](const std::shared_ptr<Stream> &stream) {
      if (stream->device == device && stream->completed < stream->enqueued)
        working.push_back(stream);
    };
    consider(devices[device].legacy);
    for (const auto &[key, stream] : streams)
      consider(stream);
    for (const std::shared_ptr<Stream> &stream : destroyedStreams)
      consider(stream);
    if (working.empty())
      break;
    step(*working[random() % working.size()]);
  }
  std::erase_if(destroyedStreams, [](const auto &s) { return s->completed == s->enqueued; });
}

cudaError_t State::query(const Point &point) {
  if (point.isDone())
    return sticky;
  Stream &stream = *point.stream;
  if (stream.wasQueried && !stream.isBusy) {
    step(stream);
    return point.isDone() ? sticky : cudaErrorNotReady;
  }
  stream.wasQueried = true;
  return cudaErrorNotReady;
}

namespace {

cudaError_t createStream(State &state, cudaStream_t *result, unsigned flags) {
  state.currentCall().allocates = true;
  const auto stream = std::make_shared<Stream>();
  stream->device = thisThread.device;
  stream->isBlocking = !(flags & cudaStreamNonBlocking);
  state.streams.emplace(stream.get(), stream);
  *result = handleOf<cudaStream_t>(stream.get());
  return cudaSuccess;
}

/// Calls `body` with a stream that is not being captured; a capture becomes invalid.
template <class Body> cudaError_t withIdle(State &state, cudaStream_t handle, const Body &body) {
  const std::shared_ptr<Stream> stream = state.find(handle);
  if (!stream)
    return cudaErrorInvalidResourceHandle;
  if (stream->capture) {
    stream->capture->isInvalidated = true;
    return cudaErrorStreamCaptureUnsupported;
  }
  return body(stream);
}

/// Calls `wait` with a stream that may be waited for.
template <class Wait> cudaError_t waitFor(State &state, cudaStream_t handle, const Wait &wait) {
  return withIdle(state, handle, [&](const std::shared_ptr<Stream> &stream) {
    if (const cudaError_t error = state.refuseImplicit(*stream); error != cudaSuccess)
      return error;
    if (const cudaError_t error = state.refuseUnsafe(); error != cudaSuccess)
      return error;
    return wait(State::endOf(stream));
  });
}

/// Calls `body` with a stream. CUDA tells nothing of one that is being captured.
template <class Body>
cudaError_t describe(const char *function, cudaStream_t handle, const Body &body) {
  return api(function, handle, [&](State &state) {
    return withIdle(state, handle, [&](const std::shared_ptr<Stream> &stream) {
      body(stream.get());
      return cudaSuccess;
    });
  });
}

} // namespace
} // namespace cgc::test::fake_cuda

using namespace cgc::test::fake_cuda;

cudaError_t cudaStreamCreate(cudaStream_t *result) {
  return api(__func__, [&](State &state) { return createStream(state, result, 0); });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *result, unsigned flags) {
  return api(__func__, [&](State &state) { return createStream(state, result, flags); });
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *result, unsigned flags, int) {
  return api(__func__, [&](State &state) { return createStream(state, result, flags); });
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return freeingApi(__func__, [&](State &state) {
    state.currentCall().allocates = true;
    const auto at = state.streams.find(reinterpret_cast<Stream *>(handle));
    if (at == state.streams.end())
      return cudaErrorInvalidResourceHandle;
    const std::shared_ptr<Stream> stream = at->second;
    if (const std::shared_ptr<Capture> capture = stream->capture) {
      // Nothing can end the capture of an origin that is gone.
      if (capture->origin == stream.get())
        state.endCapture(capture);
      capture->isInvalidated = true;
      capture->streams.erase(stream.get());
      stream->capture = nullptr;
    }
    state.streams.erase(at);
    if (stream->completed < stream->enqueued) // CUDA completes its work, too.
      state.destroyedStreams.push_back(stream);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return api(__func__, handle, [&](State &state) {
    return waitFor(state, handle, [&](const Point &end) {
      state.currentCall().waits = true;
      state.complete(end);
      return state.sticky;
    });
  });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return api(__func__, handle, [&](State &state) {
    return waitFor(state, handle, [&](const Point &end) { return state.query(end); });
  });
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int *device) {
  return describe(__func__, handle, [&](const Stream *stream) { *device = stream->device; });
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned *flags) {
  return describe(__func__, handle, [&](const Stream *stream) {
    *flags = stream->isBlocking ? cudaStreamDefault : cudaStreamNonBlocking;
  });
}
