// ProfileRows: aggregates the times of a bucket's records for cgc profile.
#pragma once

#include "runtime/plan/plan.h"

#include <string>
#include <vector>

namespace cgc::tool {

/// One record. Module and source are empty where the plan has no location.
struct ProfileRow {
  std::string op, module, source;
  double micros = 0; ///< Median time.
};
/// One row per record, in order. `times` holds at least one time for each record, in microseconds.
std::vector<ProfileRow> profileRows(const PlanData &plan, const Bucket &bucket,
                                    std::vector<std::vector<double>> times);

/// All records of one op, or of one module and source line.
struct ProfileGroup {
  std::string name, source;
  size_t records = 0;
  double micros = 0;
};
/// Groups `rows` by op or by module; the group with the longest total time comes first.
std::vector<ProfileGroup> groupRows(const std::vector<ProfileRow> &rows, bool byModule);

} // namespace cgc::tool
