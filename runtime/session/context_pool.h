// ContextPool: contexts that any number of threads take turns to use.
#pragma once

#include "runtime/exec/engine.h"
#include "runtime/exec/row_range.h"

#include <chrono>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <optional>

namespace cgc {

/// A context of a pool. One thread at a time has it.
struct PooledContext {
  PooledContext(Context context, int device) : context(std::move(context)), device(device) {}
  Context context;
  const int device;            ///< Index of the GPU; -1 on the host.
  std::vector<BucketRun> runs; ///< Scratch memory of whoever has the context.
  size_t captured = 0;         ///< Buckets that the session has counted as captured.
  bool isTaken = false;
  uint64_t lastTurn = 0; ///< The turn in which it was last taken.
};

/// Which contexts of a pool a thread can use.
struct ContextFilter {
  std::optional<int> device = {};      ///< Only one of this device.
  const PooledContext *only = nullptr; ///< Only this one.
  bool takes(const PooledContext &context) const {
    return (!device || *device == context.device) && (!only || only == &context);
  }
};

/// How long a request may wait for a context.
struct WaitLimits {
  size_t maxWaiting = 1024;                              ///< Requests that wait at a time.
  std::optional<std::chrono::milliseconds> timeout = {}; ///< Nothing: no limit.
};

/// Thread-safe. It must not be moved or destroyed while a thread is in acquire() or has a context.
class ContextPool final {
public:
  ContextPool() = default;
  ContextPool(const ContextPool &) = delete;
  ContextPool &operator=(const ContextPool &) = delete;

  /// Adds a context. Not while another thread uses the pool.
  void add(Context context, int device) { contexts_.emplace_back(std::move(context), device); }

  /// Returns a context to the pool.
  struct Release {
    ContextPool *pool;
    void operator()(PooledContext *context) const { pool->release(*context); }
  };
  using Lease = std::unique_ptr<PooledContext, Release>;

  /// Takes a free context that `filter` takes: one of the device with the fewest taken contexts,
  /// and of these the one that was idle longest. If none is free, waits; threads that wait get
  /// contexts in the order in which they came. Busy if `limits` are exceeded. Allocates nothing.
  Result<Lease> acquire(const ContextFilter &filter, const WaitLimits &limits);

  /// The pool's contexts, which only the one who has them may use.
  std::list<PooledContext> &contexts() { return contexts_; }
  /// The number of threads in acquire() that wait.
  size_t waiting() const;
  /// Whether acquire() would have to wait now.
  bool isFull(const ContextFilter &filter) const;

private:
  /// A thread in acquire(), in its stack frame.
  struct Waiter {
    explicit Waiter(const ContextFilter &filter) : filter(filter) {}
    const ContextFilter filter;
    PooledContext *granted = nullptr;
    std::condition_variable wake;
    Waiter *next = nullptr;
  };

  void release(PooledContext &context);
  const PooledContext *findFree(const ContextFilter &filter) const;
  void take(PooledContext &context);
  void removeWaiter(Waiter &waiter);

  mutable std::mutex mutex_;
  std::list<PooledContext> contexts_;
  Waiter *first_ = nullptr; ///< Those that wait, in order.
  size_t waiting_ = 0;
  uint64_t turns_ = 0;
};

} // namespace cgc
