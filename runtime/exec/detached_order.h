// detachedOrder: what the records of a bucket wait for because of its detached branches.
#pragma once

#include "runtime/plan/branches.h"

#include <cstdint>
#include <vector>

namespace cgc {

/// What a record waits for, beside the order of branches and regions.
struct DetachedWaits {
  /// Of a record of a detached branch: the branches of its region, as bits, whose records up to it
  /// have to be done; bit 0 stands for the records before the region.
  uint32_t branches = 0;
  /// The number of records of each detached branch, but its own, that have to be done.
  DetachedCounts detached{};

  bool operator==(const DetachedWaits &) const = default;
};

/// The waits of each record of a valid bucket. Empty if it has no detached branch.
std::vector<DetachedWaits> detachedOrder(const Bucket &bucket);

} // namespace cgc
