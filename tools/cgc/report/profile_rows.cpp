// ProfileRows: computes medians, names and groups.
#include "tools/cgc/report/profile_rows.h"

#include "tools/cgc/report/plan_summary.h"
#include "tools/cgc/verbs/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace cgc::tool {

std::vector<ProfileRow> profileRows(const PlanData &plan, const Bucket &bucket,
                                    std::vector<std::vector<double>> times) {
  std::vector<ProfileRow> rows;
  for (size_t i = 0; i < bucket.records.size(); ++i) {
    ProfileRow row{recordName(bucket.records[i]), "", "", Samples(std::move(times[i])).median()};
    if (const LocationId id = bucket.records[i].location; id != kNoLocation) {
      const SourceLocation &location = plan.locations[uint32_t(id)];
      row.module = location.module;
      row.source = fmt::format("{}:{}", location.file, location.line);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<ProfileGroup> groupRows(const std::vector<ProfileRow> &rows, bool byModule) {
  std::map<std::pair<std::string, std::string>, ProfileGroup> groups;
  for (const ProfileRow &row : rows) {
    const auto key =
        byModule ? std::pair(row.module, row.source) : std::pair(row.op, std::string());
    ProfileGroup &group = groups[key];
    group.name = key.first;
    group.source = key.second;
    ++group.records;
    group.micros += row.micros;
  }
  std::vector<ProfileGroup> sorted;
  for (auto &[key, group] : groups)
    sorted.push_back(std::move(group));
  std::ranges::stable_sort(sorted, std::ranges::greater(), &ProfileGroup::micros);
  return sorted;
}

} // namespace cgc::tool
