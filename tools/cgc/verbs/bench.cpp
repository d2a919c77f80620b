// cgc bench: measures how fast a plan runs, and defines each figure beside it
// (docs/benchmarking.md).
#include "runtime/exec/cuda_support.h"
#include "tools/cgc/cli/console.h"
#include "tools/cgc/cli/host_modules.h"
#include "tools/cgc/cli/libraries.h"
#include "tools/cgc/cli/progress.h"
#include "tools/cgc/io/inputs.h"
#include "tools/cgc/io/target_tensors.h"
#include "tools/cgc/report/bench_table.h"
#include "tools/cgc/report/plan_summary.h"
#include "tools/cgc/verbs/bench_load.h"
#include "tools/cgc/verbs/bench_memory.h"
#include "tools/cgc/verbs/peers.h"
#include "tools/cgc/verbs/runner.h"
#include "tools/cgc/verbs/timing.h"
#include "tools/cgc/verbs/verbs.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace cgc::tool {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char *kCommonDefinitions =
    "latency       one run alone: from the call to its results\n"
    "back-to-back  time per run of several runs in a row, with one wait at the end\n"
    "load          plan opened and verified, weights in place, all buckets made ready";
constexpr const char *kCudaDefinitions =
    "\nGPU           one run between two events on the stream, after another run\n"
    "host submit   how long the call itself takes; the GPU goes on after it\n"
    "capture       capture, instantiate and upload of the bucket's graph; part of load\n"
    "GPU memory    what loading took from the GPU's free memory, without CUDA's own context\n"
    "Inputs and outputs are on the GPU; the copies to and from the plan's buffers count.";

constexpr const char *kPeerDefinitions =
    "LibTorch in this process, TF32 as in the plan, inputs on its device, results left where it "
    "puts them:\n"
    "eager         the model file's ops one by one, without the JIT's optimizations\n"
    "frozen        the method frozen and optimized for inference, with the JIT's fusers";
constexpr const char *kCapturedDefinition =
    "\ncaptured      frozen, in a CUDA graph with the copies of its inputs and outputs";
constexpr const char *kTableDefinitions =
    "Table: eager is times x its median back-to-back time. graph (plan, for cpu) is load, with "
    "all\n"
    "captures, once and times x the plan's. From break-even calls on, the plan takes less in "
    "total.";

struct BenchFlags {
  std::string plan, against, executor = "graph";
  BucketChoice buckets;
  int samples = 50, threads = 0;
  std::vector<std::string> opLibraries;
  std::string hostModules;
  bool copies = false, table = false, memory = false, json = false;
  LoadChoice load;
};

struct Figures {
  PlanBucket bucket;
  Timing timing; ///< `submit` is only for target cuda.
  Samples gpu;   ///< Only for target cuda.
  BucketStats stats;
  std::vector<PeerFigures> peers; ///< Only with --against.
};

/// Figures that are measured once for the plan.
struct LoadingFigures {
  double millis = 0;
  uint64_t gpuBytes = 0; ///< Only for target cuda.
};

/// Runs one bucket repeatedly, with inputs and outputs in the target's memory.
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
        CGC_TRY(CGC_CUDA(cudaEventCreate(&made), "cannot create an event"));
        event->reset(made);
      }
    }
    return bench;
  }

  Result<Figures> measure(int samples) {
    Figures figures{bucket_, {}, {}, runner_.stats(*bucket_.entry, bucket_.index), {}};
    CGC_ASSIGN_OR_RETURN(figures.timing,
                         timeRuns([&] { return run(); }, [&] { return wait(); }, samples));
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
    return stream_ ? CGC_CUDA(cudaStreamSynchronize(stream_.get()), "the run failed")
                   : Status::ok();
  }

  Status measureGpu(Samples &samples) {
    // This run keeps the GPU busy: an idle GPU would wait for the host between the two events.
    CGC_TRY(run());
    CGC_TRY(CGC_CUDA(cudaEventRecord(start_.get(), stream_.get()), "cannot record an event"));
    CGC_TRY(run());
    CGC_TRY(CGC_CUDA(cudaEventRecord(end_.get(), stream_.get()), "cannot record an event"));
    CGC_TRY(wait());
    float millis = 0;
    CGC_TRY(CGC_CUDA(cudaEventElapsedTime(&millis, start_.get(), end_.get()),
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

/// Free memory of the GPU. 0 if there is no GPU; loading the plan then reports the problem.
uint64_t freeGpuBytes() {
  size_t free = 0, total = 0;
  return CGC_CUDA(cudaMemGetInfo(&free, &total), "no GPU").isOk() ? free : 0;
}

CallCosts costsOf(const Figures &figures, const LoadingFigures &load) {
  return {.eager = figures.peers.at(0).timing->backToBack.median(),
          .plan = figures.timing.backToBack.median(),
          .once = load.millis};
}

std::string tableText(bool cuda, const LoadingFigures &load, const std::vector<Figures> &all) {
  std::vector<std::vector<std::string>> rows = {{"times", "eager, s", cuda ? "graph, s" : "plan, s",
                                                 "saved, %", "break-even, calls", "entry",
                                                 "inputs"}};
  for (const Figures &figures : all) {
    const CallCosts costs = costsOf(figures, load);
    const auto calls = breakEvenCalls(costs);
    for (const TableRow &row : tableRows(costs))
      rows.push_back({std::to_string(row.times), fmt::format("{:.4f}", row.eagerSeconds),
                      fmt::format("{:.4f}", row.planSeconds),
                      fmt::format("{:.1f}", row.savedPercent),
                      calls ? std::to_string(*calls) : "never", figures.bucket.entry->name,
                      describeIo(figures.bucket.bucket().inputs)});
  }
  return formatTable(rows);
}

Status printFigures(const BenchFlags &options, bool cuda, const LoadingFigures &load,
                    const std::vector<Figures> &all) {
  std::vector<std::vector<std::string>> rows = {
      {"entry", "figure, ms", "min", "median", "p90", "p99", "inputs"}};
  std::vector<std::vector<std::string>> captures = {{"entry", "capture, ms", "nodes", "inputs"}};
  std::string notMeasured;
  for (const Figures &figures : all) {
    const std::string &entry = figures.bucket.entry->name;
    const std::string inputs = describeIo(figures.bucket.bucket().inputs);
    const auto add = [&](const std::string &name, const Samples &samples) {
      std::vector<std::string> row = {entry, name};
      for (double share : {0.0, 0.5, 0.9, 0.99})
        row.push_back(fmt::format("{:.4f}", samples.quantile(share)));
      row.push_back(inputs);
      rows.push_back(std::move(row));
    };
    add("latency", figures.timing.latency);
    add("back-to-back", figures.timing.backToBack);
    if (cuda) {
      add("GPU", figures.gpu);
      add("host submit", figures.timing.submit);
      captures.push_back({entry, fmt::format("{:.2f}", figures.stats.captureMillis),
                          std::to_string(figures.stats.graphNodes), inputs});
    }
    for (const PeerFigures &peer : figures.peers)
      if (peer.timing) {
        add(std::string(systemName(peer.system)) + " latency", peer.timing->latency);
        add(std::string(systemName(peer.system)) + " back-to-back", peer.timing->backToBack);
      } else {
        notMeasured += fmt::format("{} {}: no figure of {}: {}\n", entry, inputs,
                                   systemName(peer.system), peer.why);
      }
  }
  std::string text = formatTable(rows) + "\n" + notMeasured;
  if (cuda && options.executor == "graph")
    text += formatTable(captures) + "\n";
  if (options.table)
    text += tableText(cuda, load, all) + "\n";
  text += fmt::format("load: {:.1f} ms", load.millis);
  if (cuda)
    text += "; GPU memory: " + formatBytes(load.gpuBytes);
  text += fmt::format("\n\n{} samples of each figure, after warm-up.\n{}{}\n", options.samples,
                      kCommonDefinitions, cuda ? kCudaDefinitions : "");
  if (!options.against.empty())
    text += fmt::format("{}{}\n", kPeerDefinitions, cuda ? kCapturedDefinition : "");
  if (options.table)
    text += fmt::format("{}\n", kTableDefinitions);
  return printOut(text);
}

Json peersJson(const std::vector<PeerFigures> &peers) {
  Json list = Json::array();
  for (const PeerFigures &peer : peers) {
    Json fields = {{"system", systemName(peer.system)}};
    if (peer.timing) {
      fields["runs_per_sample"] = peer.timing->runsPerSample;
      fields["latency_ms"] = peer.timing->latency.json();
      fields["back_to_back_ms"] = peer.timing->backToBack.json();
      if (peer.system == PeerSystem::Captured)
        fields["capture_ms"] = peer.captureMillis;
    } else {
      fields["not_measured"] = peer.why;
    }
    list.push_back(std::move(fields));
  }
  return list;
}

Json tableJson(const CallCosts &costs) {
  Json list = Json::array();
  for (const TableRow &row : tableRows(costs))
    list.push_back({{"times", row.times},
                    {"eager_s", row.eagerSeconds},
                    {"plan_s", row.planSeconds},
                    {"saved_percent", row.savedPercent}});
  return list;
}

Status printFiguresJson(const BenchFlags &options, bool cuda, const LoadingFigures &load,
                        const std::vector<Figures> &all) {
  Json buckets = Json::array();
  for (const Figures &figures : all) {
    const Bucket &bucket = figures.bucket.bucket();
    Json fields = {{"entry", figures.bucket.entry->name},
                   {"bucket", figures.bucket.index},
                   {"inputs", describeIo(bucket.inputs)},
                   {"records", bucket.records.size()},
                   {"runs_per_sample", figures.timing.runsPerSample},
                   {"latency_ms", figures.timing.latency.json()},
                   {"back_to_back_ms", figures.timing.backToBack.json()}};
    if (cuda) {
      fields["gpu_ms"] = figures.gpu.json();
      fields["submit_ms"] = figures.timing.submit.json();
      fields["capture_ms"] = figures.stats.captureMillis;
      fields["graph_nodes"] = figures.stats.graphNodes;
    }
    if (!options.against.empty())
      fields["peers"] = peersJson(figures.peers);
    if (options.table) {
      const CallCosts costs = costsOf(figures, load);
      const auto calls = breakEvenCalls(costs);
      fields["table"] = tableJson(costs);
      fields["break_even_calls"] = calls ? Json(*calls) : Json(nullptr);
    }
    buckets.push_back(std::move(fields));
  }
  Json result = {{"plan", options.plan},
                 {"target", deviceName(cuda ? DeviceKind::Cuda : DeviceKind::Cpu)},
                 {"executor", cuda ? options.executor : "stream"},
                 {"samples", options.samples},
                 {"load_ms", load.millis}};
  if (!options.against.empty())
    result["against"] = options.against;
  if (cuda)
    result["gpu_bytes"] = load.gpuBytes;
  result["buckets"] = std::move(buckets);
  return printJson("bench", result);
}

Status bench(const BenchFlags &options) {
  if (options.memory)
    return benchMemory(options.plan, options.executor, options.opLibraries, options.hostModules,
                       options.json);
  if (options.load.isAsked())
    return benchLoad({.plan = options.plan,
                      .executor = options.executor,
                      .buckets = options.buckets,
                      .threads = options.threads,
                      .opLibraries = options.opLibraries,
                      .hostModules = options.hostModules,
                      .json = options.json},
                     options.load);
  if (options.table && options.against.empty())
    return Status(Code::Usage, "--table compares with LibTorch: give the model that the plan was "
                               "compiled from as --against MODEL.pt");
  if (!options.against.empty())
    CGC_TRY(MappedFile::open(options.against).status());
  CGC_ASSIGN_OR_RETURN(const Plan plan, Plan::load(options.plan, Plan::Verify::Metadata));
  CGC_TRY(checkThreads(plan.data(), options.threads));
  CGC_ASSIGN_OR_RETURN(const auto buckets, planBuckets(plan.data(), options.buckets));
  const bool cuda = plan.data().target == DeviceKind::Cuda;
  if (options.copies && !cuda)
    return Status(Code::Usage, "--copies is for plans with target cuda: a cpu plan always copies "
                               "inputs and outputs; leave it out");

  const auto systems = options.against.empty() ? std::vector<PeerSystem>()
                                               : PeerBench::systemsOf(plan.data().target);
  Progress progress(1 + buckets.size() + (systems.empty() ? 0 : 1) +
                    systems.size() * buckets.size());
  progress.begin("load " + options.plan);
  LoadingFigures load;
  // This also creates the CUDA context, which must not count toward the plan's memory.
  const uint64_t freeBefore = cuda ? freeGpuBytes() : 0;
  const auto start = Clock::now();
  ContextOptions context{.executor = executorOf(options.executor), .threads = options.threads};
  if (options.copies)
    context.addressSets = 0;
  CGC_ASSIGN_OR_RETURN(const auto runner,
                       Runner::create(options.plan, options.opLibraries, context,
                                      /*separateBuffers=*/false, options.hostModules));
  load.millis = millisSince(start);
  const uint64_t freeAfter = cuda ? freeGpuBytes() : 0;
  load.gpuBytes = freeBefore - std::min(freeBefore, freeAfter);
  std::optional<PeerBench> peers; // A wrong model is rejected before anything is timed.
  if (!options.against.empty()) {
    progress.begin("load " + options.against);
    CGC_ASSIGN_OR_RETURN(peers, PeerBench::load(options.against, plan.data(), options.threads));
    for (const PlanBucket &bucket : buckets)
      CGC_TRY(peers->check(bucket));
  }

  std::vector<Figures> all;
  for (const PlanBucket &bucket : buckets) {
    progress.begin(
        fmt::format("bench {} {}", bucket.entry->name, describeIo(bucket.bucket().inputs)));
    CGC_ASSIGN_OR_RETURN(BucketBench one, BucketBench::create(*runner, bucket));
    CGC_ASSIGN_OR_RETURN(Figures figures, one.measure(options.samples));
    all.push_back(std::move(figures));
  }
  for (Figures &figures : all)
    for (const PeerSystem system : systems) {
      progress.begin(fmt::format("bench LibTorch {}, {} {}", systemName(system),
                                 figures.bucket.entry->name,
                                 describeIo(figures.bucket.bucket().inputs)));
      CGC_ASSIGN_OR_RETURN(PeerFigures peer,
                           peers->measure(system, figures.bucket, options.samples));
      figures.peers.push_back(std::move(peer));
    }
  return options.json ? printFiguresJson(options, cuda, load, all)
                      : printFigures(options, cuda, load, all);
}

} // namespace

Verb addBench(CLI::App &app) {
  auto options = std::make_shared<BenchFlags>();
  CLI::App *command = app.add_subcommand("bench", "Measure how fast a plan runs");
  command->add_option("plan", options->plan, "The plan")->type_name("PLAN")->required();
  addBucketOptions(*command, options->buckets, "Measure");
  CLI::Option *const samples =
      command->add_option("--samples", options->samples, "Samples of each figure")
          ->type_name("N")
          ->check(CLI::Range(kMinSamples, 1'000'000))
          ->capture_default_str();
  addTimedExecutorOption(*command, options->executor);
  addThreadsOption(*command, options->threads)
      ->description("Under load: threads that send requests [1]. Else: threads that LibTorch "
                    "computes a cpu plan's records with [one for each core, or OMP_NUM_THREADS]");
  CLI::Option *const against =
      command
          ->add_option("--against", options->against,
                       "Measure LibTorch too, on the file that the plan was compiled from")
          ->type_name("MODEL.pt");
  CLI::Option *const table = command->add_flag(
      "--table", options->table, "With --against: what 1 to 10000 calls take, loading included");
  CLI::Option *const copies =
      command->add_flag("--copies", options->copies,
                        "Copy inputs and outputs to and from the plan's own buffers, instead of "
                        "running on them where they are (cuda)");
  CLI::Option *const memory = command->add_flag(
      "--memory", options->memory, "Measure memory instead of time, at each stage of a process");
  // The memory is that of the whole plan.
  for (const char *name :
       {"--entry", "--batch", "--threads", "--samples", "--against", "--table", "--copies"})
    memory->excludes(command->get_option(name));
  addLoadOptions(*command, options->load, {samples, against, table, copies, memory});
  addOpLibraryOption(*command, options->opLibraries);
  addHostModulesOption(*command, options->hostModules);
  command->add_flag("--json", options->json, "Print the result as JSON");
  command->footer(
      "Definitions are printed beside the figures.\n\n"
      "Examples:\n"
      "  cgc bench model.cgplan\n"
      "  cgc bench model.cgplan --against model.pt --table\n"
      "  cgc bench model.cgplan --entry encode_text --batch 1 --json\n"
      "  cgc bench model.cgplan --memory\n"
      "  cgc bench model.cgplan --entry encode_text --threads 4 --contexts 2 --mix "
      "1:70,4:20 --seconds 1\n"
      "  cgc bench model.cgplan --entry encode_text --threads 8 --rate 100 --seconds 1");
  return {command, [options] { return bench(*options); }, [options] { return options->json; }};
}

} // namespace cgc::tool
