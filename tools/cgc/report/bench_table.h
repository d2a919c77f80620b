// BenchTable: what a number of calls takes with LibTorch and with a plan, loading included.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cgc::tool {

/// Milliseconds: a call of LibTorch, a run of the plan, and what comes once before the first run.
struct CallCosts {
  double eager = 0, plan = 0, once = 0;
};

/// The fewest calls from which on the plan has taken less time; none if its runs are not shorter.
std::optional<int64_t> breakEvenCalls(const CallCosts &costs);

/// One cell of the classic table.
struct TableRow {
  int64_t times = 0;
  double eagerSeconds = 0, planSeconds = 0;
  double savedPercent = 0; ///< Negative where the plan takes longer.
};
/// A row for 1, 100, 1000 and 10000 calls.
std::vector<TableRow> tableRows(const CallCosts &costs);

} // namespace cgc::tool
