// Training report: tables and JSON.
#include "tools/cgc/train/training_report.h"

#include "runtime/plan/plan_memory.h"
#include "tools/cgc/cli/console.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <string_view>

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

double millisPerStep(const TrainingReport &report) {
  return 1000 / stepsPerSecond(report);
}

/// LibTorch's loss of a step, the first of which is 1; NaN if it did not make the step.
double peerLoss(const PeerResult &peer, uint64_t step) {
  return step <= peer.losses.size() ? peer.losses[step - 1].loss : std::nan("");
}

double relativeDifference(double loss, double expected) {
  return std::abs(loss - expected) / std::max(std::abs(expected), 1e-30);
}

/// The largest relative difference over the steps of both; NaN if one of the losses is.
double largestDifference(const TrainingReport &report) {
  double largest = 0;
  for (const CurvePoint &point : report.result.losses)
    if (point.step <= report.against->losses.size()) {
      const double difference =
          relativeDifference(point.loss, peerLoss(*report.against, point.step));
      if (!(difference <= largest))
        largest = difference;
    }
  return largest;
}

/// LibTorch's memory at a stage; none where there is no such stage.
std::optional<uint64_t> peerMemory(const PeerResult &peer, std::string_view stage) {
  return stage == "model ready" ? std::optional(peer.ready)
         : stage == "steady"    ? std::optional(peer.steady)
         : stage == "peak"      ? std::optional(peer.peak)
                                : std::nullopt;
}

std::string againstText(const TrainingReport &report) {
  const PeerResult &peer = *report.against;
  const double millis = millisPerStep(report);
  std::string text =
      fmt::format("against {}: {:.3g} ms a step, LibTorch {:.3g} ms, {:.2f} times as long\n"
                  "the losses differ by at most {:.2g} of LibTorch's\n",
                  peer.model, millis, peer.millis, peer.millis / millis, largestDifference(report));
  for (const std::string &note : peer.notes)
    text += "note: " + note + "\n";
  return text;
}

} // namespace

std::vector<MemoryStage> trainingStages(const PlanData &plan, bool onGpu,
                                        const MemoryReport &counted, uint64_t captured,
                                        uint64_t steady, uint64_t peak) {
  const PlanMemory bytes = planMemory(plan);
  // On the host, the weights are mapped and not predicted.
  const uint64_t ready = (onGpu ? bytes.weights : 0) + counted.states; // Ranks may divide them.
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
  if (report.against)
    rows.back().insert(rows.back().end(), {"LibTorch", "relative difference"});
  for (const CurvePoint &point : reportedLosses(report)) {
    rows.push_back({std::to_string(point.step), lossText(point.loss)});
    if (report.against) {
      const double expected = peerLoss(*report.against, point.step);
      rows.back().push_back(lossText(expected));
      rows.back().push_back(fmt::format("{:.2g}", relativeDifference(point.loss, expected)));
    }
  }
  std::string text = formatTable(rows);
  if (report.validationSamples != 0) {
    rows = {{"step", fmt::format("loss of {} validation samples", report.validationSamples)}};
    for (const CurvePoint &point : result.validation)
      rows.push_back({std::to_string(point.step), lossText(point.loss)});
    text += "\n" + formatTable(rows);
  }
  text += fmt::format("\n{} steps of {} samples in {:.2f} s: {:.1f} steps/s, {:.1f} samples/s\n",
                      result.losses.size(), report.batch, result.seconds, stepsPerSecond(report),
                      stepsPerSecond(report) * static_cast<double>(report.batch));
  if (result.stoppedBy != 0 && result.microBatches != 0)
    text += fmt::format("interrupted after {} micro-batches of a step\n", result.microBatches);
  else if (result.stoppedBy != 0)
    text += "interrupted; the last step is complete\n";
  if (report.nonFiniteLosses != 0 || result.nonFiniteBatches != 0)
    text += fmt::format("NaN or infinity in {} losses and in {} batches\n", report.nonFiniteLosses,
                        result.nonFiniteBatches);
  if (!report.checkpoint.empty())
    text += fmt::format("checkpoint: {}\n", report.checkpoint);
  if (!report.curve.empty())
    text += fmt::format("loss curve: {}\n", report.curve);
  if (report.against)
    text += againstText(report);
  rows = {{"memory", "predicted", "measured"}};
  if (report.against)
    rows.back().push_back("LibTorch");
  for (const MemoryStage &stage : report.memory) {
    rows.push_back({stage.name, formatBytes(stage.predicted), formatBytes(stage.measured)});
    if (report.against) {
      const auto bytes = peerMemory(*report.against, stage.name);
      rows.back().push_back(bytes ? formatBytes(*bytes) : "-");
    }
  }
  return text + "\n" + formatTable(rows);
}

Json trainingJson(const TrainingReport &report) {
  const TrainingResult &result = report.result;
  Json losses = Json::array(), validation = Json::array(), memory = Json::array();
  for (const CurvePoint &point : reportedLosses(report))
    losses.push_back({{"step", point.step}, {"loss", number(point.loss)}});
  for (const CurvePoint &point : result.validation)
    validation.push_back({{"step", point.step}, {"loss", number(point.loss)}});
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
  if (report.against) {
    const PeerResult &peer = *report.against;
    for (Json &loss : json["losses"])
      loss["libtorch_loss"] = number(peerLoss(peer, loss["step"]));
    for (Json &stage : json["memory"]) {
      const auto bytes = peerMemory(peer, stage["stage"].get<std::string>());
      stage["libtorch_bytes"] = bytes ? Json(*bytes) : Json();
    }
    json["against"] = {{"model", peer.model},
                       {"milliseconds_per_step", millisPerStep(report)},
                       {"libtorch_milliseconds_per_step", peer.millis},
                       {"largest_relative_difference", number(largestDifference(report))},
                       {"notes", peer.notes}};
  }
  if (report.validationSamples != 0) {
    json["validation_samples"] = report.validationSamples;
    json["validation_losses"] = std::move(validation);
  }
  if (!report.checkpoint.empty())
    json["checkpoint"] = report.checkpoint;
  if (!report.curve.empty())
    json["curve"] = report.curve;
  return json;
}

} // namespace cgc::tool
