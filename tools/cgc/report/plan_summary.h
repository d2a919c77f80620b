// Plan summary: what compile and inspect say about a plan.
#pragma once

#include "runtime/plan/plan.h"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace cgc::tool {

/// The fields of the JSON kinds "compile" and "plan" (docs/cli.md).
nlohmann::ordered_json planJson(const PlanData &plan, const std::string &path, uint64_t fileBytes);
/// The same for people: a heading and a table with a row for each bucket.
std::string planText(const PlanData &plan, const std::string &path, uint64_t fileBytes);
/// The records that LibTorch runs, a line for each op of each entry, with the place of the first in
/// the model; empty if the plan needs no LibTorch.
std::string libTorchText(const PlanData &plan);
/// Of all weights.
uint64_t weightBytes(const PlanData &plan);
/// Of the largest bucket: buckets share one arena.
uint64_t arenaBytes(const PlanData &plan);
/// How many records of each kind each entry has, from its first bucket.
std::string recordsText(const PlanData &plan);
/// Whether products of f32 round their factors to tf32.
bool roundsToTf32(const PlanData &plan);
/// "image=f32[1,3,224,224] text=i64[1,77]"
std::string describeIo(const std::vector<IoTensor> &tensors);

} // namespace cgc::tool
