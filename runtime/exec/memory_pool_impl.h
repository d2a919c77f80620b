// MemoryPool::Impl and MemoryAccount: what engines and contexts see of a pool.
#pragma once

#include "runtime/exec/arena.h"
#include "runtime/exec/memory_limit.h"
#include "runtime/exec/memory_pool.h"

#include <atomic>
#include <list>

namespace cgc {

/// The memory of an engine and its contexts, counted as it is allocated.
struct MemoryAccount {
  std::string name;
  std::atomic<uint64_t> weights = 0, arenas = 0, io = 0, graphs = 0, states = 0;
  std::atomic<uint64_t> sharedArena = 0; ///< The part of the pool's arena that it uses.
  MemoryReport report() const { return {weights, arenas + sharedArena, io, graphs, states}; }
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
