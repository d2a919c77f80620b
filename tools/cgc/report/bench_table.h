// BenchTable: the time of a number of calls with LibTorch and with a plan, loading included.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cgc::tool {

/// Times in milliseconds: one call of LibTorch, one run of the plan, and the one-time cost before
/// the first run.
struct CallCosts {
  double eager = 0, plan = 0, once = 0;
};

/// The smallest number of calls for which the plan takes less time in total. None if its runs are
/// not shorter.
std::optional<int64_t> breakEvenCalls(const CallCosts &costs);

/// One row of the table that bench --table prints for a bucket.
struct TableRow {
  int64_t times = 0;
  double eagerSeconds = 0, planSeconds = 0;
  double savedPercent = 0; ///< Negative where the plan takes longer.
};
/// Rows for 1, 100, 1000 and 10000 calls.
std::vector<TableRow> tableRows(const CallCosts &costs);

} // namespace cgc::tool
