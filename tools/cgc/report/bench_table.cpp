// BenchTable: computes the rows of the table and the break-even point.
#include "tools/cgc/report/bench_table.h"

#include <cmath>

namespace cgc::tool {

std::optional<int64_t> breakEvenCalls(const CallCosts &costs) {
  const double gain = costs.eager - costs.plan;
  if (!(gain > 0))
    return std::nullopt;
  return static_cast<int64_t>(std::floor(costs.once / gain)) + 1;
}

std::vector<TableRow> tableRows(const CallCosts &costs) {
  std::vector<TableRow> rows;
  for (const int64_t times : {1, 100, 1000, 10000}) {
    const double eager = static_cast<double>(times) * costs.eager / 1e3,
                 plan = (costs.once + static_cast<double>(times) * costs.plan) / 1e3;
    rows.push_back({times, eager, plan, (1 - plan / eager) * 100});
  }
  return rows;
}

} // namespace cgc::tool
