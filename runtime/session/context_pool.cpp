// ContextPool: a queue of waiting threads, each with a condition variable of its own.
#include "runtime/session/context_pool.h"

#include <algorithm>
#include <string>

namespace cgc {

const PooledContext *ContextPool::findFree(const ContextFilter &filter) const {
  const auto takenOn = [&](int device) {
    return std::ranges::count_if(
        contexts_, [&](const PooledContext &c) { return c.device == device && c.isTaken; });
  };
  const PooledContext *best = nullptr;
  for (const PooledContext &context : contexts_) {
    if (context.isTaken || !filter.takes(context))
      continue;
    if (!best || std::pair(takenOn(context.device), context.lastTurn) <
                     std::pair(takenOn(best->device), best->lastTurn))
      best = &context;
  }
  return best;
}

void ContextPool::take(PooledContext &context) {
  context.isTaken = true;
  context.lastTurn = ++turns_;
}

void ContextPool::removeWaiter(Waiter &waiter) {
  for (Waiter **link = &first_; *link; link = &(*link)->next)
    if (*link == &waiter) {
      *link = waiter.next;
      --waiting_;
      return;
    }
}

Result<ContextPool::Lease> ContextPool::acquire(const ContextFilter &filter,
                                                const WaitLimits &limits) {
  std::unique_lock lock(mutex_);
  if (auto *const free = const_cast<PooledContext *>(findFree(filter))) {
    // Nobody waits for a context that is free: release() hands it over.
    take(*free);
    return Lease(free, Release{this});
  }
  if (waiting_ >= limits.maxWaiting)
    return Status(Code::Busy, "all " + std::to_string(contexts_.size()) +
                                  " contexts are in use and " + std::to_string(waiting_) +
                                  " requests wait, which is the limit; try again later, or give "
                                  "the session more contexts");
  Waiter self(filter);
  Waiter **last = &first_;
  while (*last)
    last = &(*last)->next;
  *last = &self;
  ++waiting_;
  const auto isGranted = [&] { return self.granted != nullptr; };
  if (!limits.timeout) {
    self.wake.wait(lock, isGranted);
  } else if (!self.wake.wait_for(lock, *limits.timeout, isGranted)) {
    removeWaiter(self);
    return Status(Code::Busy, "no context became free within " +
                                  std::to_string(limits.timeout->count()) +
                                  " ms; try again later, or give the session more contexts");
  }
  return Lease(self.granted, Release{this});
}

void ContextPool::release(PooledContext &context) {
  const std::lock_guard lock(mutex_);
  for (Waiter *waiter = first_; waiter; waiter = waiter->next)
    if (waiter->filter.takes(context)) {
      removeWaiter(*waiter);
      take(context);
      waiter->granted = &context;
      waiter->wake.notify_one(); // Under the lock: the waiter's frame ends once it has it.
      return;
    }
  context.isTaken = false;
}

size_t ContextPool::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_;
}

bool ContextPool::isFull(const ContextFilter &filter) const {
  const std::lock_guard lock(mutex_);
  return !findFree(filter);
}

} // namespace cgc
