// ProfileRows: what cgc profile makes of the times of a bucket's records.
#pragma once

#include "runtime/plan/plan.h"

#include <string>
#include <vector>

namespace cgc::tool {

/// One record. Module and source are empty where the plan has no location.
struct ProfileRow {
  std::string op, module, source;
  double micros = 0; ///< The median of its times.
};
/// In the order of the records; `times` holds at least one time of each, in microseconds.
std::vector<ProfileRow> profileRows(const PlanData &plan, const Bucket &bucket,
                                    std::vector<std::vector<double>> times);

/// Records of one op, or of one module and line, together.
struct ProfileGroup {
  std::string name, source;
  size_t records = 0;
  double micros = 0;
};
/// The group that took longest comes first.
std::vector<ProfileGroup> groupRows(const std::vector<ProfileRow> &rows, bool byModule);

} // namespace cgc::tool
