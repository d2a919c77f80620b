// The C API: memory pools.
#include "runtime/c_api/handles.h"

using namespace cgc;
using namespace cgc::c_api;

cgc_code cgc_memory_pool_create(cgc_memory memory, int32_t device, uint64_t limit,
                                cgc_memory_pool **pool, cgc_error **error) {
  return call(error, [&]() -> Status {
    CGC_TRY(require(pool, "pool"));
    if (memory != CGC_HOST && memory != CGC_GPU)
      return {Code::Usage, "there is no memory " + std::to_string(int(memory))};
    CGC_ASSIGN_OR_RETURN(
        auto created,
        MemoryPool::create({.target = memory == CGC_GPU ? DeviceKind::Cuda : DeviceKind::Cpu,
                            .device = memory == CGC_GPU ? device : 0,
                            .limit = limit}));
    *pool = new cgc_memory_pool{std::move(created)};
    return Status::ok();
  });
}

void cgc_memory_pool_destroy(cgc_memory_pool *pool) {
  delete pool;
}

cgc_code cgc_memory_pool_get_report(const cgc_memory_pool *pool, cgc_pool_report *report,
                                    cgc_error **error) {
  return call(error, [&]() -> Status {
    CGC_TRY(require(pool, "pool"));
    const PoolReport r = pool->pool->report();
    const MemoryReport &sum = r.sum;
    return toCaller({0, sum.weights, sum.arenas, sum.io, sum.graphs, sum.peak, r.limit,
                     sum.workspace, sum.states},
                    report, "cgc_pool_report");
  });
}
