// CollectiveOrder: what the collectives of a bucket and its other records wait for.
#pragma once

#include "runtime/plan/plan.h"

#include <cstdint>
#include <vector>

namespace cgc {

/// The waits that kCollectiveBranch asks for, beside those of branches and regions.
struct CollectiveOrder {
  /// For a collective of kCollectiveBranch: the branches of its region, as bits, whose records up
  /// to it have to be done; bit 0 stands for the records before the region. For another record: the
  /// number of collectives of kCollectiveBranch that have to be done.
  std::vector<uint32_t> waits; ///< By record. Empty if the bucket has no such collective.
};

/// The order of a valid bucket.
CollectiveOrder collectiveOrder(const Bucket &bucket);

} // namespace cgc
