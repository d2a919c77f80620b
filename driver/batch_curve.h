// BatchCurve: the time of an entry by its batch, and the choice of batches to compile from it.
#pragma once

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <vector>

namespace cgc::driver {

/// The time of one entry at some batches.
struct BatchCurve {
  std::vector<int64_t> batches; ///< Ascending, from 1 on; at least one.
  std::vector<double> micros;   ///< One for each.

  /// The time at `batch`, linear between two batches, that of the first before it and of the last
  /// after it.
  double at(int64_t batch) const;
};

/// The batches from 1 to `most` whose times a curve has: powers of 2, the means of two neighbors,
/// and `most`.
std::vector<int64_t> sampledBatches(int64_t most);

/// The fewest batches, ascending, so that each batch from 1 to `most` runs in one that is no
/// smaller and takes at most 1 + `waste` times its own time, in each entry. `waste` is at least 0,
/// and `curves` is not empty.
std::vector<int64_t> chooseBatches(llvm::ArrayRef<BatchCurve> curves, int64_t most, double waste);

} // namespace cgc::driver
