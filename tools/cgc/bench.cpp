// cgc bench: how fast a plan runs. What each figure is: kDefinitions, and docs/benchmarking.md.
#include "runtime/exec/cuda_support.h"
#include "tools/cgc/console.h"
#include "tools/cgc/inputs.h"
#include "tools/cgc/libraries.h"
#include "tools/cgc/plan_summary.h"
#include "tools/cgc/progress.h"
#include "tools/cgc/runner.h"
#include "tools/cgc/target_tensors.h"
#include "tools/cgc/verbs.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace cgc::tool {

namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

/// From fewer, a p90 or p99 says nothing.
constexpr int kFewestSamples = 30;
constexpr int kWarmUps = 20, kFewestWarmUps = 3;
constexpr double kWarmUpMillis = 2000;
/// Back-to-back runs of a sample; fewer if they would take longer than kSampleMillis.
constexpr int kRunsPerSample = 40;
constexpr double kSampleMillis = 250;

constexpr const char *kCommonDefinitions =
    "latency       one run alone: from the call to its results\n"
    "back-to-back  time per run of a row of runs with one wait at the end\n"
    "load          plan opened and verified, weights in place, all buckets made ready";
constexpr const char *kCudaDefinitions =
    "\nGPU           one run between two events on the stream, behind another run\n"
    "host submit   how long the call itself takes; the GPU goes on after it\n"
    "capture       capture, instantiate and upload of the bucket's graph; part of load\n"
    "GPU memory    what loading took from the GPU's free memory, without CUDA's own context\n"
    "Inputs and outputs are on the GPU; the copies to and from the plan's buffers count.";

struct Options {
  std::string plan, entry, executor = "graph";
  std::vector<int64_t> batches;
  int samples = 50;
  std::vector<std::string> opLibraries;
  bool json = false;
};

double millisSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Several measurements of one figure, in milliseconds.
class Samples {
public:
  void add(double millis) { values_.insert(std::ranges::upper_bound(values_, millis), millis); }
  /// The smallest value that at least this share of the values does not exceed.
  double quantile(double share) const {
    const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(values_.size())));
    return values_[std::max<size_t>(rank, 1) - 1];
  }
  Json json() const {
    return {{"min", values_.front()},
            {"median", quantile(0.5)},
            {"p90", quantile(0.9)},
            {"p99", quantile(0.99)}};
  }

private:
  std::vector<double> values_; ///< Sorted.
};

struct Figures {
  PlanBucket bucket;
  int runsPerSample = 0;
  Samples latency, backToBack;
  Samples gpu, submit; ///< Target cuda only.
  BucketStats stats;
};

/// What is measured once for the plan.
struct LoadFigures {
  double millis = 0;
  uint64_t gpuBytes = 0; ///< Target cuda only.
};

/// Runs one bucket again and again, inputs and outputs in the target's memory.
class BucketBench {
public:
  static Result<BucketBench> create(Runner &runner, const PlanBucket &bucket) {
    const DeviceKind target = runner.plan().target;
    CGC_ASSIGN_OR_RETURN(TargetTensors inputs,
                         TargetTensors::randomInputs(target, bucket.bucket().inputs));
    CGC_ASSIGN_OR_RETURN(TargetTensors outputs,
                         TargetTensors::outputs(target, bucket.bucket().outputs));
    BucketBench bench(runner, bucket, std::move(inputs), std::move(outputs));
    if (target == DeviceKind::Cuda) {
      CGC_ASSIGN_OR_RETURN(bench.stream_, createStream());
      for (CudaEvent *event : {&bench.start_, &bench.end_}) {
        cudaEvent_t made = nullptr;
        CGC_TRY(cudaStatus(cudaEventCreate(&made), "cannot create an event"));
        event->reset(made);
      }
    }
    return bench;
  }

  Result<Figures> measure(int samples) {
    Figures figures{bucket_, 0, {}, {}, {}, {}, runner_.stats(*bucket_.entry, bucket_.index)};
    const auto begin = Clock::now();
    for (int i = 0; i < kFewestWarmUps || (i < kWarmUps && millisSince(begin) < kWarmUpMillis); ++i)
      CGC_TRY(run());
    CGC_TRY(wait());

    for (int i = 0; i < samples; ++i) {
      const auto start = Clock::now();
      CGC_TRY(run());
      figures.submit.add(millisSince(start));
      CGC_TRY(wait());
      figures.latency.add(millisSince(start));
    }
    const double runs = kSampleMillis / figures.latency.quantile(0.5);
    figures.runsPerSample = static_cast<int>(std::clamp<double>(runs, 1, kRunsPerSample));
    for (int i = 0; i < samples; ++i) {
      const auto start = Clock::now();
      for (int j = 0; j < figures.runsPerSample; ++j)
        CGC_TRY(run());
      CGC_TRY(wait());
      figures.backToBack.add(millisSince(start) / figures.runsPerSample);
    }
    for (int i = 0; stream_ && i < samples; ++i)
      CGC_TRY(measureGpu(figures.gpu));
    return figures;
  }

private:
  BucketBench(Runner &runner, const PlanBucket &bucket, TargetTensors inputs, TargetTensors outputs)
      : runner_(runner), bucket_(bucket), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {
  }

  Status run() {
    return runner_.context().run(bucket_.entry->name, inputs_.views(), outputs_.views(),
                                 stream_.get());
  }

  Status wait() {
    return stream_ ? cudaStatus(cudaStreamSynchronize(stream_.get()), "the run failed")
                   : Status::ok();
  }

  Status measureGpu(Samples &samples) {
    // Ahead of the run that is measured: an idle GPU would wait for the host between the events.
    CGC_TRY(run());
    CGC_TRY(cudaStatus(cudaEventRecord(start_.get(), stream_.get()), "cannot record an event"));
    CGC_TRY(run());
    CGC_TRY(cudaStatus(cudaEventRecord(end_.get(), stream_.get()), "cannot record an event"));
    CGC_TRY(wait());
    float millis = 0;
    CGC_TRY(cudaStatus(cudaEventElapsedTime(&millis, start_.get(), end_.get()),
                       "cannot read the time between two events"));
    samples.add(millis);
    return Status::ok();
  }

  Runner &runner_;
  PlanBucket bucket_;
  TargetTensors inputs_, outputs_;
  CudaStream stream_; ///< Null for target cpu.
  CudaEvent start_, end_;
};

/// Free memory of the GPU. 0 if there is none: loading the plan says what is wrong.
uint64_t freeGpuBytes() {
  size_t free = 0, total = 0;
  return cudaStatus(cudaMemGetInfo(&free, &total), "no GPU").isOk() ? free : 0;
}

Status printText(const Options &options, bool cuda, const LoadFigures &load,
                 const std::vector<Figures> &all) {
  std::vector<std::vector<std::string>> rows = {
      {"entry", "figure, ms", "min", "median", "p90", "p99", "inputs"}};
  std::vector<std::vector<std::string>> captures = {{"entry", "capture, ms", "nodes", "inputs"}};
  for (const Figures &figures : all) {
    const std::string &entry = figures.bucket.entry->name;
    const std::string inputs = describeIo(figures.bucket.bucket().inputs);
    const auto add = [&](const char *name, const Samples &samples) {
      std::vector<std::string> row = {entry, name};
      for (double share : {0.0, 0.5, 0.9, 0.99})
        row.push_back(fmt::format("{:.4f}", samples.quantile(share)));
      row.push_back(inputs);
      rows.push_back(std::move(row));
    };
    add("latency", figures.latency);
    add("back-to-back", figures.backToBack);
    if (cuda) {
      add("GPU", figures.gpu);
      add("host submit", figures.submit);
      captures.push_back({entry, fmt::format("{:.2f}", figures.stats.captureMillis),
                          std::to_string(figures.stats.graphNodes), inputs});
    }
  }
  std::string text = formatTable(rows) + "\n";
  if (cuda && options.executor == "graph")
    text += formatTable(captures) + "\n";
  text += fmt::format("load: {:.1f} ms", load.millis);
  if (cuda)
    text += "; GPU memory: " + formatBytes(load.gpuBytes);
  return printOut(fmt::format("{}\n\n{} samples of each figure, after warm-up.\n{}{}\n", text,
                              options.samples, kCommonDefinitions, cuda ? kCudaDefinitions : ""));
}

Status printJson(const Options &options, bool cuda, const LoadFigures &load,
                 const std::vector<Figures> &all) {
  Json buckets = Json::array();
  for (const Figures &figures : all) {
    const Bucket &bucket = figures.bucket.bucket();
    Json fields = {
        {"entry", figures.bucket.entry->name},         {"bucket", figures.bucket.index},
        {"inputs", describeIo(bucket.inputs)},         {"records", bucket.records.size()},
        {"runs_per_sample", figures.runsPerSample},    {"latency_ms", figures.latency.json()},
        {"back_to_back_ms", figures.backToBack.json()}};
    if (cuda) {
      fields["gpu_ms"] = figures.gpu.json();
      fields["submit_ms"] = figures.submit.json();
      fields["capture_ms"] = figures.stats.captureMillis;
      fields["graph_nodes"] = figures.stats.graphNodes;
    }
    buckets.push_back(std::move(fields));
  }
  Json result = {{"plan", options.plan},
                 {"target", deviceName(cuda ? DeviceKind::Cuda : DeviceKind::Cpu)},
                 {"executor", cuda ? options.executor : "stream"},
                 {"samples", options.samples},
                 {"load_ms", load.millis}};
  if (cuda)
    result["gpu_bytes"] = load.gpuBytes;
  result["buckets"] = std::move(buckets);
  return tool::printJson("bench", result);
}

Status bench(const Options &options) {
  if (options.samples < kFewestSamples)
    return Status(Code::Usage,
                  fmt::format("--samples {}: a figure from fewer than {} samples says too little; "
                              "ask for {} or more",
                              options.samples, kFewestSamples, kFewestSamples));
  CGC_ASSIGN_OR_RETURN(const Plan plan, Plan::load(options.plan, Plan::Verify::Metadata));
  CGC_ASSIGN_OR_RETURN(const auto buckets,
                       planBuckets(plan.data(), options.entry, options.batches));
  const bool cuda = plan.data().target == DeviceKind::Cuda;

  Progress progress(1 + buckets.size());
  progress.begin("load " + options.plan);
  LoadFigures load;
  // Makes CUDA's own context too, which no plan is to blame for.
  const uint64_t freeBefore = cuda ? freeGpuBytes() : 0;
  const auto start = Clock::now();
  const auto kind = options.executor == "stream" ? ExecutorKind::Stream : ExecutorKind::Graph;
  CGC_ASSIGN_OR_RETURN(const auto runner,
                       Runner::create(options.plan, options.opLibraries, {.executor = kind}));
  load.millis = millisSince(start);
  const uint64_t freeAfter = cuda ? freeGpuBytes() : 0;
  load.gpuBytes = freeBefore - std::min(freeBefore, freeAfter);

  std::vector<Figures> all;
  for (const PlanBucket &bucket : buckets) {
    progress.begin(
        fmt::format("bench {} {}", bucket.entry->name, describeIo(bucket.bucket().inputs)));
    CGC_ASSIGN_OR_RETURN(BucketBench one, BucketBench::create(*runner, bucket));
    CGC_ASSIGN_OR_RETURN(Figures figures, one.measure(options.samples));
    all.push_back(std::move(figures));
  }
  return options.json ? printJson(options, cuda, load, all) : printText(options, cuda, load, all);
}

} // namespace

Verb addBench(CLI::App &app) {
  auto options = std::make_shared<Options>();
  CLI::App *command = app.add_subcommand("bench", "Measure how fast a plan runs");
  command->add_option("plan", options->plan, "The plan")->type_name("PLAN")->required();
  command->add_option("--entry", options->entry, "Measure just this entry [all]")
      ->type_name("NAME");
  command
      ->add_option("--batch", options->batches,
                   "Measure just the buckets with these values of dimension 0 [all]")
      ->type_name("N,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      ->add_option("--samples", options->samples,
                   fmt::format("Samples of each figure, at least {}", kFewestSamples))
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--executor", options->executor,
                   "graph replays a captured CUDA graph, stream launches one by one; cpu plans "
                   "always run one by one")
      ->check(CLI::IsMember({"graph", "stream"}))
      ->capture_default_str();
  addOpLibraryOption(*command, options->opLibraries);
  command->add_flag("--json", options->json, "Print the result as JSON");
  command->footer("Definitions are printed beside the figures.\n\n"
                  "Examples:\n"
                  "  cgc bench model.cgplan\n"
                  "  cgc bench model.cgplan --entry encode_text --batch 1 --json");
  return {command, [options] { return bench(*options); }, [options] { return options->json; }};
}

} // namespace cgc::tool
