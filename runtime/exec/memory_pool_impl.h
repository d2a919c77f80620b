// MemoryPool::Impl and MemoryAccount: what engines and contexts see of a pool.
#pragma once

#include "runtime/exec/arena.h"
#include "runtime/exec/memory_limit.h"
#include "runtime/exec/memory_pool.h"

#include <list>
#include <mutex>

namespace cgc {

/// The memory of an engine and its contexts, counted as it is allocated. Thread-safe.
class MemoryAccount final {
public:
  explicit MemoryAccount(std::string name) : name(std::move(name)) {}

  /// Adds memory of the engine or of a context, whose `peak` is ignored.
  void add(const MemoryReport &more);
  void subtract(const MemoryReport &less);
  /// Sets the part of the pool's arena that the engine uses.
  void useShared(uint64_t arena, uint64_t workspace);
  /// All of it.
  MemoryReport report() const;
  /// Without the part of the pool's arena.
  MemoryReport own() const;
  /// Of the part of the pool's arena.
  uint64_t sharedWorkspace() const;

  const std::string name;

private:
  MemoryReport sum() const; ///< With the lock held.
  mutable std::mutex mutex_;
  MemoryReport own_;
  uint64_t sharedArena_ = 0, sharedWorkspace_ = 0, peak_ = 0;
};

struct MemoryPool::Impl {
  explicit Impl(const MemoryPoolOptions &options)
      : options(options), budget(options.target, options.limit) {}

  /// Makes the arena at least `bytes` large and returns it. OutOfMemory past the limit.
  Result<std::shared_ptr<Arena>> arenaOf(uint64_t bytes);
  void add(const std::shared_ptr<MemoryAccount> &account);

  const MemoryPoolOptions options;
  MemoryBudget budget;
  std::shared_ptr<Arena> arena;
  mutable std::mutex mutex; ///< Guards growth and `accounts`.
  std::list<std::weak_ptr<MemoryAccount>> accounts;
};

MemoryPool::Impl &implOf(const MemoryPool &pool);

} // namespace cgc
