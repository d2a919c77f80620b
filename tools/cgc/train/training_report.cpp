// Training report: tables and JSON.
#include "tools/cgc/train/training_report.h"

#include "runtime/plan/plan_memory.h"
#include "tools/cgc/cli/console.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace cgc::tool {
namespace {

using Json = nlohmann::ordered_json;

/// The losses that are reported: of each `logEvery`-th step, and of the last one.
std::vector<CurvePoint> reportedLosses(const TrainingReport &report) {
  const std::vector<CurvePoint> &all = report.result.losses;
  std::vector<CurvePoint> losses;
  for (size_t i = 0; i < all.size(); ++i)
    if ((i + 1) % report.logEvery == 0 || i + 1 == all.size())
      losses.push_back(all[i]);
  return losses;
}

double stepsPerSecond(const TrainingReport &report) {
  return static_cast<double>(report.result.losses.size()) / std::max(report.result.seconds, 1e-9);
}

/// `loss` as text. A NaN has no sign.
std::string lossText(double loss) {
  return std::isnan(loss) ? "nan" : fmt::format("{:.6g}", loss);
}

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

} // namespace

std::vector<MemoryStage> trainingStages(const PlanData &plan, bool onGpu,
                                        const MemoryReport &counted, uint64_t captured,
                                        uint64_t steady, uint64_t peak) {
  const PlanMemory bytes = planMemory(plan);
  // On the host, the weights are mapped and not predicted.
  const uint64_t ready = (onGpu ? bytes.weights : 0) + bytes.states;
  const uint64_t all = ready + bytes.arena + bytes.io;
  const auto without = [](uint64_t total, uint64_t part) { return total - std::min(total, part); };
  const uint64_t inputs = without(captured, counted.graphs);
  return {{"model ready", ready, ready, without(inputs, counted.arenas + counted.io)},
          {"static inputs", all, all, inputs},
          {"after capture", all, all, captured},
          {"steady", all, all, steady},
          {"peak", all, all, peak}};
}

std::string trainingText(const TrainingReport &report) {
  const TrainingResult &result = report.result;
  std::vector<std::vector<std::string>> rows = {{"step", "loss"}};
  for (const CurvePoint &point : reportedLosses(report))
    rows.push_back({std::to_string(point.step), lossText(point.loss)});
  std::string text = formatTable(rows);
  text += fmt::format("\n{} steps of {} samples in {:.2f} s: {:.1f} steps/s, {:.1f} samples/s\n",
                      result.losses.size(), report.batch, result.seconds, stepsPerSecond(report),
                      stepsPerSecond(report) * static_cast<double>(report.batch));
  if (result.stoppedBy != 0 && result.microBatches != 0)
    text += fmt::format("interrupted behind {} micro-batches of a step\n", result.microBatches);
  else if (result.stoppedBy != 0)
    text += "interrupted; the last step is complete\n";
  if (report.nonFiniteLosses != 0 || result.nonFiniteBatches != 0)
    text += fmt::format("NaN or infinity in {} losses and in {} batches\n", report.nonFiniteLosses,
                        result.nonFiniteBatches);
  if (!report.checkpoint.empty())
    text += fmt::format("checkpoint: {}\n", report.checkpoint);
  if (!report.curve.empty())
    text += fmt::format("loss curve: {}\n", report.curve);
  rows = {{"memory", "predicted", "measured"}};
  for (const MemoryStage &stage : report.memory)
    rows.push_back({stage.name, formatBytes(stage.predicted), formatBytes(stage.measured)});
  return text + "\n" + formatTable(rows);
}

Json trainingJson(const TrainingReport &report) {
  const TrainingResult &result = report.result;
  Json losses = Json::array(), memory = Json::array();
  for (const CurvePoint &point : reportedLosses(report))
    losses.push_back({{"step", point.step}, {"loss", number(point.loss)}});
  for (const MemoryStage &stage : report.memory)
    memory.push_back({{"stage", stage.name},
                      {"predicted_bytes", stage.predicted},
                      {"measured_bytes", stage.measured}});
  Json json = {{"plan", report.plan},
               {"executor", report.executor},
               {"first_step", report.firstStep},
               {"steps", result.losses.size()},
               {"batch", report.batch},
               {"seconds", result.seconds},
               {"steps_per_second", stepsPerSecond(report)},
               {"loss", result.losses.empty() ? Json() : number(result.losses.back().loss)},
               {"losses", std::move(losses)},
               {"non_finite_losses", report.nonFiniteLosses},
               {"non_finite_batches", result.nonFiniteBatches},
               {"interrupted", result.stoppedBy != 0},
               {"micro_batches", result.microBatches},
               {"memory", std::move(memory)}};
  if (!report.checkpoint.empty())
    json["checkpoint"] = report.checkpoint;
  if (!report.curve.empty())
    json["curve"] = report.curve;
  return json;
}

} // namespace cgc::tool
