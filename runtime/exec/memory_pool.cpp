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
    if (Status grown = noThrow([&] { return arena->grow(bytes); }); !grown.isOk()) {
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

MemoryReport &MemoryReport::operator+=(const MemoryReport &other) {
  weights += other.weights;
  arenas += other.arenas;
  io += other.io;
  graphs += other.graphs;
  states += other.states;
  workspace += other.workspace;
  return *this;
}

void MemoryAccount::add(const MemoryReport &more) {
  const std::lock_guard lock(mutex_);
  own_ += more;
  peak_ = std::max(peak_, sum().total());
}

void MemoryAccount::subtract(const MemoryReport &less) {
  const std::lock_guard lock(mutex_);
  own_.weights -= less.weights;
  own_.arenas -= less.arenas;
  own_.io -= less.io;
  own_.graphs -= less.graphs;
  own_.states -= less.states;
  own_.workspace -= less.workspace;
}

void MemoryAccount::useShared(uint64_t arena, uint64_t workspace) {
  const std::lock_guard lock(mutex_);
  sharedArena_ = arena;
  sharedWorkspace_ = workspace;
  peak_ = std::max(peak_, sum().total());
}

MemoryReport MemoryAccount::sum() const {
  MemoryReport report = own_;
  report.arenas += sharedArena_;
  report.workspace += sharedWorkspace_;
  report.peak = peak_;
  return report;
}

MemoryReport MemoryAccount::report() const {
  const std::lock_guard lock(mutex_);
  return sum();
}

MemoryReport MemoryAccount::own() const {
  const std::lock_guard lock(mutex_);
  return own_;
}

uint64_t MemoryAccount::sharedWorkspace() const {
  const std::lock_guard lock(mutex_);
  return sharedWorkspace_;
}

PoolReport MemoryPool::report() const {
  const std::lock_guard lock(impl_->mutex);
  PoolReport report;
  report.limit = impl_->options.limit;
  report.sum.peak = impl_->budget.peak();
  uint64_t sharedWorkspace = 0;
  for (const std::weak_ptr<MemoryAccount> &known : impl_->accounts)
    if (const auto account = known.lock()) {
      report.models.push_back({account->name, account->report()});
      report.sum += account->own(); // With the arenas that contexts have to themselves.
      sharedWorkspace = std::max(sharedWorkspace, account->sharedWorkspace());
    }
  report.sum.arenas += impl_->arena->size();
  report.sum.workspace += sharedWorkspace;
  return report;
}

} // namespace cgc
