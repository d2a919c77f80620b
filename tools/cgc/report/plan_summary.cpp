// Plan summary: counts records and requirements, and formats text and JSON.
#include "tools/cgc/report/plan_summary.h"

#include "driver/batch_curve.h"
#include "runtime/base/libtorch.h"
#include "runtime/exec/cublaslt.h"
#include "runtime/exec/nccl.h"
#include "runtime/exec/requirements.h"
#include "runtime/kernels/kernel_table.h"
#include "runtime/plan/branches.h"
#include "runtime/plan/gemm_call.h"
#include "runtime/plan/op_library.h"
#include "runtime/plan/plan_memory.h"
#include "tools/cgc/cli/console.h"
#include "tools/cgc/train/optimizer_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <map>
#include <numeric>

namespace cgc::tool {

namespace {

using Json = nlohmann::ordered_json;

/// The bytes of the states that ranks divide.
uint64_t dividedStateBytes(const PlanData &plan) {
  uint64_t bytes = 0;
  for (const State &state : plan.states)
    if (state.shard)
      bytes += *tensorBytes(state.dtype, state.sizes);
  return bytes;
}

Json ioJson(const std::vector<IoTensor> &tensors) {
  Json list = Json::array();
  for (const IoTensor &tensor : tensors) {
    Json io = {{"name", tensor.name}, {"dtype", dtypeName(tensor.dtype)}, {"shape", tensor.sizes}};
    if (const std::optional<IndexRange> range = indexRange(tensor)) {
      io["upper_bound"] = range->end;
      if (range->least > 0)
        io["lower_bound"] = range->least;
    }
    if (tensor.batchDim != kNoBatchDim)
      io["batch_dim"] = tensor.batchDim;
    list.push_back(std::move(io));
  }
  return list;
}

/// For example "model.py:371 (visual)"; empty without a location.
std::string locationText(LocationId id, const PlanData &plan) {
  if (id == kNoLocation)
    return "";
  const SourceLocation &location = plan.locations[uint32_t(id)];
  return fmt::format("{}:{} ({})", location.file, location.line,
                     location.module.empty() ? "the model itself" : location.module);
}

Json rowsJson(const BatchRows &rows, const PlanData &plan) {
  Json json = {{"independent", rows.independent}};
  for (const auto &[key, text] : {std::pair("op", rows.op), std::pair("reason", rows.reason),
                                  std::pair("location", locationText(rows.location, plan))})
    if (!text.empty())
      json[key] = text;
  return json;
}

/// For example "dimension 0 of image, 1 of features"; "" if there is no batch dimension.
std::string batchDimsText(const Bucket &bucket) {
  std::string text;
  for (const auto *tensors : {&bucket.inputs, &bucket.outputs})
    for (const IoTensor &tensor : *tensors)
      if (tensor.batchDim != kNoBatchDim)
        text += fmt::format("{}{} of {}", text.empty() ? "dimension " : ", ", tensor.batchDim,
                            tensor.name);
  return text;
}

/// For example "rows depend on each other: aten.matmul at model.py:371 (the model itself): it
/// combines different rows".
std::string rowsText(const BatchRows &rows, const PlanData &plan) {
  if (rows.independent)
    return "rows are independent";
  if (rows.op.empty())
    return "rows may depend on each other: " +
           (rows.reason.empty() ? "the compiler did not examine them" : rows.reason);
  const std::string at = locationText(rows.location, plan);
  return fmt::format("rows depend on each other: {}{}: {}", rows.op, at.empty() ? "" : " at " + at,
                     rows.reason);
}

/// Which batches each bucket of an entry serves, and how much longer than its own expected time the
/// smallest of them takes, which is linear between buckets: "1-2 rows run in 2, 3-8 in 8 (+31 %)".
/// Empty unless the buckets differ in the batch alone.
std::string servedText(const Entry &entry) {
  driver::BatchCurve curve;
  for (const Bucket &bucket : entry.buckets) {
    const auto batch = batchOf(bucket);
    if (!batch || (!curve.batches.empty() && *batch <= curve.batches.back()))
      return "";
    curve.batches.push_back(*batch);
    curve.micros.push_back(bucket.expectedMicros);
  }
  if (curve.batches.size() < 2 || !entry.rows.independent)
    return "";
  std::string text;
  for (size_t i = 0; i < curve.batches.size(); ++i) {
    const int64_t least = i == 0 ? 1 : curve.batches[i - 1] + 1, batch = curve.batches[i];
    text += text.empty() ? "" : ", ";
    text += least == batch ? fmt::format("{}", batch) : fmt::format("{}-{}", least, batch);
    text += fmt::format("{} in {}", i > 0 ? "" : batch == 1 ? " row runs" : " rows run", batch);
    if (const double own = curve.at(least); i > 0 && least != batch && own > 0)
      text += fmt::format(" (+{:.0f} %)", 100 * (curve.micros[i] / own - 1));
  }
  return text;
}

/// A line for each entry: the batch dimensions, and whether rows are independent; then which
/// batches its buckets serve.
std::string batchText(const PlanData &plan) {
  std::string text = "  batch:\n";
  for (const Entry &entry : plan.entries) {
    const std::string dims = batchDimsText(entry.buckets[0]);
    text += fmt::format("    {}: {}{}{}\n", entry.name, dims, dims.empty() ? "" : "; ",
                        rowsText(entry.rows, plan));
    if (const std::string served = servedText(entry); !served.empty())
      text += fmt::format("      {}\n", served);
  }
  return text;
}

/// The number of records of each branch of a bucket; empty if it has no branches.
std::vector<size_t> branchSizes(const Bucket &bucket) {
  std::vector<size_t> sizes(largestBranch(bucket));
  for (const LaunchRecord &record : bucket.records)
    if (record.branch > 0 && !isDetached(record.branch))
      ++sizes[record.branch - 1];
  return sizes;
}

/// A line for each bucket with branches; "" if there is none.
std::string branchesText(const PlanData &plan) {
  std::string text;
  for (const Entry &entry : plan.entries)
    for (const Bucket &bucket : entry.buckets)
      if (const auto sizes = branchSizes(bucket); !sizes.empty())
        text += fmt::format("    {}, {}: {} of {} records in branches of {}\n", entry.name,
                            describeIo(bucket.inputs),
                            std::accumulate(sizes.begin(), sizes.end(), size_t{0}),
                            bucket.records.size(), fmt::join(sizes, ", "));
  return text.empty() ? "" : "  runs at the same time:\n" + text;
}

/// The number of records of each name, for example "aten::linear" -> 24.
std::map<std::string, size_t> countRecords(const Bucket &bucket) {
  std::map<std::string, size_t> counts;
  for (const LaunchRecord &record : bucket.records)
    ++counts[recordName(record)];
  return counts;
}

} // namespace

uint64_t weightBytes(const PlanData &plan) {
  uint64_t total = 0;
  for (const Weight &weight : plan.weights)
    total += tensorBytes(weight.dtype, weight.sizes).value_or(0);
  return total;
}

uint64_t arenaBytes(const PlanData &plan) {
  uint64_t largest = 0;
  for (const Entry &entry : plan.entries)
    for (const Bucket &bucket : entry.buckets)
      largest = std::max(largest, bucket.arenaBytes);
  return largest;
}

namespace {

Json requirementsJson(const PlanData &plan) {
  const Requirements needs = requirementsOf(plan);
  Json libTorch = Json::array(), opLibraries = Json::array(), hostFunctions = Json::array();
  for (const auto &[name, location] : needs.hostFunctions)
    hostFunctions.push_back(name);
  for (const auto &[entry, ops] : needs.libTorch) {
    Json records = Json::object();
    for (const auto &[name, op] : ops)
      records[name] = op.records;
    libTorch.push_back({{"entry", entry}, {"records", std::move(records)}});
  }
  for (const OpLibraryId &library : plan.opLibraries)
    opLibraries.push_back(library.name);
  return {{"gpu", needs.gpu ? Json(needs.needsSm90a() ? "sm_90a" : "sm_80") : Json(nullptr)},
          {"cublaslt", needs.cublasLt},
          {"nccl", needs.nccl},
          {"ranks", needs.ranks},
          {"libtorch", std::move(libTorch)},
          {"op_libraries", std::move(opLibraries)},
          {"host_functions", std::move(hostFunctions)}};
}

/// For example "40 aten::convolution, 1 aten::mean.out".
std::string countsText(const std::map<std::string, Requirements::LibTorchOp> &ops) {
  std::vector<std::string> counts;
  for (const auto &[name, op] : ops)
    counts.push_back(fmt::format("{} {}", op.records, name));
  return joinNames(counts);
}

std::string requirementsText(const PlanData &plan) {
  const Requirements needs = requirementsOf(plan);
  std::string text;
  if (needs.gpu)
    text += fmt::format("    a GPU: {}\n", needs.needsSm90a()
                                               ? "H100 or H200, as it has kernels for sm_90a"
                                               : "sm_80 or newer");
  if (needs.cublasLt)
    text += fmt::format("    cuBLASLt: {}\n", CublasLt::kLibrary);
  if (needs.nccl)
    text += fmt::format("    NCCL: {}, {}\n", kNcclLibrary,
                        needs.ranks > 0 ? fmt::format("{} ranks", needs.ranks)
                                        : "for several ranks, of any number");
  if (!needs.libTorch.empty())
    text += fmt::format("    LibTorch {}, for these records:\n", kLibTorchVersion);
  for (const auto &[entry, ops] : needs.libTorch)
    text += fmt::format("      {}: {}\n", entry, countsText(ops));
  for (const OpLibraryId &library : plan.opLibraries)
    text += fmt::format("    op library {}, xxhash64 {}\n", library.name, hashText(library.hash));
  for (const auto &[name, location] : needs.hostFunctions) {
    const std::string at = locationText(location, plan);
    text += fmt::format("    host function {}{}\n", name, at.empty() ? "" : ", called at " + at);
  }
  return text.empty() ? "  needs no other library at run time\n" : "  needs at run time:\n" + text;
}

} // namespace

std::string libTorchText(const PlanData &plan) {
  std::string text;
  for (const auto &[entry, ops] : requirementsOf(plan).libTorch)
    for (const auto &[name, op] : ops) {
      text += fmt::format("  {}: {} {}", entry, op.records, name);
      if (op.location != kNoLocation)
        text += fmt::format(", {} {}", op.records == 1 ? "at" : "the first at",
                            locationText(op.location, plan));
      text += "\n";
    }
  return text;
}

bool roundsToTf32(const PlanData &plan) {
  for (const Entry &entry : plan.entries)
    for (const Bucket &bucket : entry.buckets)
      for (const LaunchRecord &record : bucket.records)
        if (const auto *call = std::get_if<LibraryCall>(&record.op); call && isGemm(*call))
          if (const auto gemm = gemmCall(*call, bucket.tensors); gemm.isOk() && gemm->tf32)
            return true;
  return false;
}

std::string describeIo(const std::vector<IoTensor> &tensors) {
  std::string text;
  for (const IoTensor &tensor : tensors)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", tensor.name,
                        formatShape(dtypeName(tensor.dtype), tensor.sizes));
  return text;
}

Json planJson(const PlanData &plan, const std::string &path, uint64_t fileBytes) {
  Json entries = Json::array();
  for (const Entry &entry : plan.entries) {
    Json buckets = Json::array();
    for (const Bucket &bucket : entry.buckets) {
      Json kinds = Json::object();
      for (const auto &[name, count] : countRecords(bucket))
        kinds[name] = count;
      buckets.push_back({{"inputs", ioJson(bucket.inputs)},
                         {"outputs", ioJson(bucket.outputs)},
                         {"records", bucket.records.size()},
                         {"records_by_kind", std::move(kinds)},
                         {"branches", branchSizes(bucket)},
                         {"arena_bytes", bucket.arenaBytes},
                         {"expected_us", bucket.expectedMicros},
                         {"measured", bucket.isMeasured}});
    }
    entries.push_back({{"name", entry.name},
                       {"rows", rowsJson(entry.rows, plan)},
                       {"buckets", std::move(buckets)}});
  }
  Json opLibraries = Json::array();
  for (const OpLibraryId &library : plan.opLibraries)
    opLibraries.push_back({{"name", library.name}, {"hash", hashText(library.hash)}});
  Json states = Json::array();
  for (const State &state : plan.states)
    states.push_back({{"name", state.name},
                      {"role", stateRoleName(state.role)},
                      {"dtype", dtypeName(state.dtype)},
                      {"shape", state.sizes}});
  for (size_t i = 0; i < plan.states.size(); ++i)
    if (plan.states[i].shard)
      states[i]["shard"] = *plan.states[i].shard;
  Json json = {{"path", path},
               {"bytes", fileBytes},
               {"target", deviceName(plan.target)},
               {"producer", plan.producer},
               {"weights", plan.weights.size()},
               {"weight_bytes", weightBytes(plan)},
               {"arena_bytes", arenaBytes(plan)},
               {"states", std::move(states)},
               {"state_bytes", planMemory(plan).states},
               {"divided_state_bytes", dividedStateBytes(plan)},
               {"op_libraries", std::move(opLibraries)},
               {"requirements", requirementsJson(plan)},
               {"entries", std::move(entries)}};
  if (plan.training)
    json["training"] = commandText(*plan.training);
  if (plan.gpu)
    json["gpu"] = {{"name", plan.gpu->name},
                   {"multiprocessors", plan.gpu->multiprocessors},
                   {"tuned", plan.gpu->tuned}};
  return json;
}

namespace {

/// A table of the states; empty without any.
std::string statesText(const PlanData &plan) {
  if (plan.states.empty())
    return "";
  const uint64_t divided = dividedStateBytes(plan);
  std::vector<std::vector<std::string>> rows = {{"state", "role", "type", "begins as"}};
  if (divided > 0)
    rows[0].emplace_back("shard");
  for (const State &state : plan.states) {
    rows.push_back({state.name, std::string(stateRoleName(state.role)),
                    shapeText(state.dtype, state.sizes),
                    state.initial == kBeginsAsZeros
                        ? "zeros"
                        : fmt::format("weight {}", plan.weights[state.initial].name)});
    if (divided > 0)
      rows.back().push_back(state.shard ? std::to_string(*state.shard) : "");
  }
  return fmt::format("\n{}The states take {} in each context.\n{}", formatTable(rows),
                     formatBytes(planMemory(plan).states),
                     divided == 0 ? ""
                                  : fmt::format("Ranks divide {} of them (cgc memory --ranks N).\n",
                                                formatBytes(divided)));
}

} // namespace

std::string planText(const PlanData &plan, const std::string &path, uint64_t fileBytes) {
  std::string text = fmt::format("{}: plan for {}, {}, by {}\n  {} weights, {}; arena {}\n", path,
                                 deviceName(plan.target), formatBytes(fileBytes), plan.producer,
                                 plan.weights.size(), formatBytes(weightBytes(plan)),
                                 formatBytes(arenaBytes(plan)));
  if (plan.training)
    text += fmt::format("  the step of {}\n", commandText(*plan.training));
  if (plan.gpu)
    text += fmt::format("  {} {} ({} SMs)\n", plan.gpu->tuned ? "tuned on" : "launch shapes for",
                        plan.gpu->name, plan.gpu->multiprocessors);
  text += requirementsText(plan) + batchText(plan) + branchesText(plan) + "\n";
  std::vector<std::vector<std::string>> rows = {
      {"entry", "records", "arena", "expected, us", "inputs", "outputs"}};
  for (const Entry &entry : plan.entries)
    for (const Bucket &bucket : entry.buckets)
      rows.push_back(
          {entry.name, std::to_string(bucket.records.size()), formatBytes(bucket.arenaBytes),
           fmt::format("{:.1f}{}", bucket.expectedMicros, bucket.isMeasured ? " (measured)" : ""),
           describeIo(bucket.inputs), describeIo(bucket.outputs)});
  return text + formatTable(rows) + statesText(plan);
}

std::string recordsText(const PlanData &plan) {
  std::map<std::string, std::vector<size_t>> counts;
  std::vector<std::vector<std::string>> rows = {{"records"}};
  for (size_t i = 0; i < plan.entries.size(); ++i) {
    rows[0].push_back(plan.entries[i].name);
    for (const auto &[name, count] : countRecords(plan.entries[i].buckets.at(0))) {
      counts[name].resize(plan.entries.size());
      counts[name][i] = count;
    }
  }
  for (const auto &[name, perEntry] : counts) {
    rows.push_back({name});
    for (size_t count : perEntry)
      rows.back().push_back(count == 0 ? "-" : std::to_string(count));
  }
  return "\n" + formatTable(rows);
}

} // namespace cgc::tool
