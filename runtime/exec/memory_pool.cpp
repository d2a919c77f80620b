// MemoryPool: the shared arena, and the report.
#include "runtime/exec/memory_pool_impl.h"

#include "runtime/base/no_throw.h"
#include "runtime/exec/gpu.h"

#include <algorithm>
#include <unistd.h>

namespace cgc {
namespace {

/// The addresses to reserve for the arena: all memory of the device, or the limit.
Result<uint64_t> addressesFor(const MemoryPoolOptions &options) {
  if (options.limit > 0)
    return options.limit;
  if (options.target == DeviceKind::Cpu)
    return uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE));
  size_t free = 0, total = 0;
  CGC_TRY(CGC_CUDA(cudaMemGetInfo(&free, &total), "cannot ask for the GPU's memory"));
  return total;
}

} // namespace

MemoryPool::MemoryPool(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

MemoryPool::~MemoryPool() {
  const DeviceGuard guard(impl_->options.target == DeviceKind::Cuda ? impl_->options.device : -1);
  impl_->arena.reset();
}

MemoryPool::Impl &implOf(const MemoryPool &pool) {
  return *pool.impl_;
}

Result<std::shared_ptr<MemoryPool>> MemoryPool::create(MemoryPoolOptions options) {
  return noThrow([&]() -> Result<std::shared_ptr<MemoryPool>> {
    const bool onGpu = options.target == DeviceKind::Cuda;
    if (onGpu)
      CGC_TRY(findGpu(options.device).status());
    const DeviceGuard guard(onGpu ? options.device : -1);
    auto impl = std::make_unique<Impl>(options);
    CGC_ASSIGN_OR_RETURN(const uint64_t bytes, addressesFor(options));
    CGC_ASSIGN_OR_RETURN(impl->arena, Arena::createGrowable(options.target, options.device, bytes));
    return std::shared_ptr<MemoryPool>(new MemoryPool(std::move(impl)));
  });
}

Result<std::shared_ptr<Arena>> MemoryPool::Impl::arenaOf(uint64_t bytes) {
  const std::lock_guard lock(mutex);
  const uint64_t before = arena->size(), after = arena->sizeFor(bytes);
  if (after > before) {
    CGC_TRY(budget.reserve(after - before));
    if (Status grown = arena->grow(bytes); !grown.isOk()) {
      budget.release(after - before);
      return grown;
    }
  }
  return arena;
}

void MemoryPool::Impl::add(const std::shared_ptr<MemoryAccount> &account) {
  const std::lock_guard lock(mutex);
  accounts.remove_if([](const auto &known) { return known.expired(); });
  accounts.push_back(account);
}

PoolReport MemoryPool::report() const {
  const std::lock_guard lock(impl_->mutex);
  PoolReport report;
  report.limit = impl_->options.limit;
  report.peak = impl_->budget.peak();
  for (const std::weak_ptr<MemoryAccount> &known : impl_->accounts)
    if (const auto account = known.lock()) {
      report.models.push_back({account->name, account->report()});
      const MemoryReport &memory = report.models.back().memory;
      report.sum.weights += memory.weights;
      report.sum.io += memory.io;
      report.sum.graphs += memory.graphs;
      report.sum.states += memory.states;
      report.sum.arenas += account->arenas; // Of contexts with arenas of their own.
    }
  report.sum.arenas += impl_->arena->size();
  return report;
}

} // namespace cgc
