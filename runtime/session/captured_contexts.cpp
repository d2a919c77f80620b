// CapturedContexts: a user object of CUDA in the caller's graph tells when a context is free again.
#include "runtime/session/captured_contexts.h"

#include "runtime/exec/context_impl.h"

#include <algorithm>
#include <string>

namespace cgc {

Status CapturedContexts::hold(Slot &slot, cudaGraph_t graph) {
  // CUDA destroys it on a thread of its own, where it may call nothing of CUDA, possibly after the
  // session is gone. It therefore frees nothing but itself.
  using Holder = std::shared_ptr<void>;
  const auto destroy = [](void *data) { delete static_cast<Holder *>(data); };
  auto *const holder = new Holder(std::make_shared<char>());
  const std::weak_ptr<void> observed = *holder;
  cudaUserObject_t object = nullptr;
  if (const cudaError_t error =
          cudaUserObjectCreate(&object, holder, destroy, 1, cudaUserObjectNoDestructorSync);
      error != cudaSuccess) {
    destroy(holder);
    return cudaStatus(error, "cudaUserObjectCreate",
                      "cannot create a user object for the caller's graph");
  }
  if (const cudaError_t error =
          cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove);
      error != cudaSuccess) {
    (void)cudaUserObjectRelease(object, 1);
    return cudaStatus(error, "cudaGraphRetainUserObject",
                      "cannot attach a user object to the caller's graph");
  }
  slot.holder = observed;
  return Status::ok();
}

Status CapturedContexts::run(const StreamCapture &capture, int device,
                             const std::function<Status(Context &)> &body) {
  const std::lock_guard lock(mutex_);
  size_t count = 0;
  Slot *free = nullptr;
  for (Slot &slot : slots_) {
    if (slot.device != device)
      continue;
    ++count;
    const bool isHeld = !slot.holder.expired();
    if (isHeld && slot.capture == capture.id)
      return body(slot.context);
    if (!isHeld && !free)
      free = &slot;
  }
  if (count == 0)
    return {Code::Usage,
            "the stream is being captured, and the session has no context for graphs of "
            "the caller; create it with captured contexts"};
  if (!free)
    return {Code::Busy,
            "graphs of the caller hold all " + std::to_string(count) +
                " contexts that are set aside for them; destroy one of these graphs and "
                "its executables, or create the session with more captured contexts"};
  CGC_TRY(hold(*free, capture.graph));
  free->capture = capture.id;
  return body(free->context);
}

size_t CapturedContexts::capturedBuckets() const {
  const std::lock_guard lock(mutex_);
  size_t count = 0;
  for (const Slot &slot : slots_)
    count += implOf(slot.context).capturedBuckets();
  return count;
}

bool CapturedContexts::areHeld() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(slots_, [](const Slot &slot) { return !slot.holder.expired(); });
}

} // namespace cgc
