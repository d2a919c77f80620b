// CapturedContexts: contexts whose graphs callers launch inside graphs of their own.
#pragma once

#include "runtime/exec/caller_capture.h"
#include "runtime/exec/engine.h"

#include <functional>
#include <list>
#include <memory>
#include <mutex>

namespace cgc {

/// Contexts set aside for captures. A capture takes one, which it has until the caller's graph, its
/// copies and its executables are destroyed and their launches are complete. Thread-safe.
class CapturedContexts final {
public:
  /// Adds a context of GPU `device`. Not while another thread uses the object.
  void add(Context context, int device) { slots_.emplace_back(std::move(context), device); }

  /// Calls `body` with the context of `capture` on GPU `device`, or with a free one, which the
  /// caller's graph holds from then on. Usage if there is no context; Busy if graphs hold all.
  Status run(const StreamCapture &capture, int device,
             const std::function<Status(Context &)> &body);

  /// The number of buckets that the contexts have captured.
  size_t capturedBuckets() const;

  /// Whether a caller's graph may still launch the graph of a context.
  bool areHeld() const;

private:
  struct Slot {
    Slot(Context context, int device) : context(std::move(context)), device(device) {}
    Context context;
    const int device;
    unsigned long long capture = 0; ///< The last capture that had it.
    std::weak_ptr<void> holder;     ///< Expires when no graph holds the context any more.
  };
  /// Makes `graph` and what is made from it hold the context of `slot`.
  static Status hold(Slot &slot, cudaGraph_t graph);

  mutable std::mutex mutex_; ///< Of all members. Held during `body`.
  std::list<Slot> slots_;
};

} // namespace cgc
