// Plan summary: the report of compile and inspect about a plan.
#pragma once

#include "runtime/plan/plan.h"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace cgc::tool {

/// The fields of the JSON kinds "compile" and "plan" (docs/cli.md).
nlohmann::ordered_json planJson(const PlanData &plan, const std::string &path, uint64_t fileBytes);
/// The same facts as human-readable text: a heading and a table with a row for each bucket.
std::string planText(const PlanData &plan, const std::string &path, uint64_t fileBytes);
/// The records that LibTorch runs: a line for each op of each entry, with the source location of
/// its first record. Empty if the plan does not need LibTorch.
std::string libTorchText(const PlanData &plan);
/// The total size of all weights.
uint64_t weightBytes(const PlanData &plan);
/// The arena size of the largest bucket. Buckets share one arena.
uint64_t arenaBytes(const PlanData &plan);
/// The number of records of each kind in the first bucket of each entry.
std::string recordsText(const PlanData &plan);
/// Whether GEMMs of f32 round their operands to tf32.
bool roundsToTf32(const PlanData &plan);
/// For example "image=f32[1,3,224,224] text=i64[1,77]".
std::string describeIo(const std::vector<IoTensor> &tensors);

} // namespace cgc::tool
