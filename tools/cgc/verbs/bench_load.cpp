// bench_load: serves the plan by a session, runs the load, the load with swaps, and the same
// requests back to back.
#include "tools/cgc/verbs/bench_load.h"

#include "tools/cgc/cli/host_modules.h"

#include "runtime/session/session.h"
#include "tools/cgc/cli/console.h"
#include "tools/cgc/cli/libraries.h"
#include "tools/cgc/cli/progress.h"
#include "tools/cgc/report/load_report.h"
#include "tools/cgc/verbs/runner.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <thread>

namespace cgc::tool {
namespace {

constexpr int kMaxDevices = 64;
constexpr double kMaxSeconds = 24 * 60 * 60, kMaxRate = 1e6;

Status checkChoice(const PlanData &plan, const LoadSetting &setting, const LoadChoice &choice) {
  if (!choice.mix.empty() && !setting.buckets.batches.empty())
    return {Code::Usage, "--mix and --batch both choose batches: give one of them"};
  if (plan.target == DeviceKind::Cpu && choice.devices > 1)
    return {Code::Usage, "--devices is for plans with target cuda, and this one's is cpu"};
  if (plan.target == DeviceKind::Cpu && choice.tensors == "device")
    return {Code::Usage, "--tensors device is for plans with target cuda, and this one's is cpu"};
  return Status::ok();
}

Result<Session> createSession(std::shared_ptr<const Plan> plan, const LoadSetting &setting,
                              const LoadChoice &choice, const std::vector<RequestKind> &kinds) {
  SessionOptions options{.contexts = choice.contexts};
  for (const RequestKind &kind : kinds)
    options.maxBatch = std::max(options.maxBatch, kind.rows);
  if (plan->data().target == DeviceKind::Cuda) {
    options.devices.resize(choice.devices);
    std::iota(options.devices.begin(), options.devices.end(), 0);
  }
  options.engine.executor = executorOf(setting.executor);
  options.engine.providerPath = providerPath();
  options.engine.opLibraries = setting.opLibraries;
  CGC_ASSIGN_OR_RETURN(options.engine.hostFunctions,
                       hostFunctionsOf(plan->data(), setting.hostModules, plan->data().target));
  return Session::create(std::move(plan), std::move(options));
}

/// Swaps the weights of a session back and forth until the load ends.
class Swapper final {
public:
  Swapper(Session &session, std::shared_ptr<const Plan> present, std::shared_ptr<const Plan> next,
          double every)
      : session_(session), next_(std::move(next)), present_(std::move(present)), every_(every) {}

  Status swap() {
    CGC_TRY(session_.swapWeights(next_));
    std::swap(next_, present_);
    ++swaps_;
    return Status::ok();
  }
  void swapUntil(const std::atomic<bool> &ended) {
    auto due = Clock::now();
    while (!ended && status_.isOk()) {
      if (Clock::now() >= due) {
        due = Clock::now() +
              std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(every_));
        status_ = swap();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  uint64_t swaps() const { return swaps_; }
  const Status &status() const { return status_; } ///< The error that ended swapUntil().

private:
  Session &session_;
  std::shared_ptr<const Plan> next_, present_;
  double every_;
  uint64_t swaps_ = 0;
  Status status_;
};

Result<std::shared_ptr<const Plan>> loadPlan(const std::string &path) {
  CGC_ASSIGN_OR_RETURN(Plan plan, Plan::load(path));
  return std::make_shared<const Plan>(std::move(plan));
}

Result<SwapFigures> measureSwaps(Load &load, Swapper &swapper, const LoadChoice &choice) {
  SwapFigures figures{.plan = choice.swapPlan, .every = choice.swapEvery, .load = {}};
  figures.load = load.run([&](const std::atomic<bool> &ended) { swapper.swapUntil(ended); });
  CGC_TRY(swapper.status().withContext("--swap " + choice.swapPlan));
  figures.swaps = swapper.swaps();
  return figures;
}

void warnOfFailures(const LoadFigures &load, const std::string &when) {
  if (load.failures() > 0)
    logWarning(fmt::format("{} of {} requests {} failed; the first: {}", load.failures(),
                           load.requests(), when, load.firstFailure));
}

} // namespace

bool LoadChoice::isAsked() const {
  return std::ranges::any_of(options,
                             [](const CLI::Option *option) { return option->count() > 0; });
}

namespace {
/// Refuses NaN, which is in every CLI::Range.
CLI::Validator isNumber() {
  return {[](const std::string &text) {
            return std::isnan(std::atof(text.c_str())) ? "'" + text + "' is no number"
                                                       : std::string();
          },
          ""};
}
} // namespace

void addLoadOptions(CLI::App &command, LoadChoice &choice,
                    const std::vector<CLI::Option *> &others) {
  const auto add = [&](CLI::Option *option) {
    option->group("Under load");
    for (CLI::Option *const other : others)
      option->excludes(other);
    choice.options.push_back(option);
    return option;
  };
  add(command.add_option("--contexts", choice.contexts,
                         "Contexts on each device: requests that run at a time"))
      ->type_name("N")
      ->check(CLI::Range(1, kMaxContexts))
      ->capture_default_str();
  add(command.add_option("--devices", choice.devices, "GPUs, from GPU 0 on"))
      ->type_name("N")
      ->check(CLI::Range(1, kMaxDevices))
      ->capture_default_str();
  add(command.add_option_function<std::string>(
          "--mix",
          [&choice](const std::string &text) {
            Result<std::vector<MixPart>> mix = parseMix(text);
            if (!mix.isOk())
              throw CLI::ValidationError("--mix", mix.status().message());
            choice.mix = *std::move(mix);
          },
          "Batches of the requests and how often each occurs [each bucket as often]"))
      ->type_name("BATCH:WEIGHT,...");
  add(command.add_option("--rate", choice.rate,
                         "Open loop: requests that arrive per second, at random [closed loop: each "
                         "client sends a request when the last one is done]"))
      ->type_name("R")
      ->check(CLI::Range(1e-3, kMaxRate) & isNumber());
  add(command.add_option("--seconds", choice.seconds, "How long the load lasts"))
      ->type_name("S")
      ->check(CLI::Range(1e-3, kMaxSeconds) & isNumber())
      ->capture_default_str();
  add(command.add_option("--tensors", choice.tensors,
                         "Where inputs and outputs are: host memory or the GPU's"))
      ->check(CLI::IsMember({"host", "device"}))
      ->capture_default_str();
  CLI::Option *const swap = add(command.add_option(
      "--swap", choice.swapPlan,
      "Measure the load again while the weights of this plan and of PLAN are swapped"));
  swap->type_name("PLAN2");
  add(command.add_option("--swap-every", choice.swapEvery, "Seconds from one swap to the next"))
      ->type_name("S")
      ->check(CLI::Range(1e-3, kMaxSeconds) & isNumber())
      ->capture_default_str()
      ->needs(swap);
}

Status benchLoad(const LoadSetting &setting, const LoadChoice &choice) {
  CGC_ASSIGN_OR_RETURN(auto plan, loadPlan(setting.plan));
  const PlanData &data = plan->data();
  CGC_TRY(checkChoice(data, setting, choice));
  noteUnusedOpLibraries(data, setting.opLibraries);
  const bool cuda = data.target == DeviceKind::Cuda;
  LoadReport report{.plan = setting.plan,
                    .target = std::string(deviceName(data.target)),
                    .executor = cuda ? setting.executor : "stream",
                    .tensors = choice.tensors,
                    .clients = std::max(setting.threads, 1),
                    .contexts = choice.contexts,
                    .devices = choice.devices,
                    .rate = choice.rate,
                    .kinds = {},
                    .load = {},
                    .backToBack = {},
                    .swap = {}};
  CGC_ASSIGN_OR_RETURN(report.kinds, requestKinds(data, setting.buckets, choice.mix));

  Progress progress(choice.swapPlan.empty() ? 4 : 5);
  progress.begin("load " + setting.plan);
  CGC_ASSIGN_OR_RETURN(Session session, createSession(plan, setting, choice, report.kinds));
  CGC_ASSIGN_OR_RETURN(
      Load load,
      Load::create(session, report.kinds,
                   {.clients = report.clients,
                    .seconds = choice.seconds,
                    .rate = choice.rate,
                    .tensors = choice.tensors == "device" ? DeviceKind::Cuda : DeviceKind::Cpu,
                    .devices = choice.devices}));
  progress.begin("warm up");
  std::optional<Swapper> swapper;
  if (!choice.swapPlan.empty()) {
    CGC_ASSIGN_OR_RETURN(auto other, loadPlan(choice.swapPlan));
    // A plan that cannot be swapped in is refused here. The second swap brings back the weights.
    Swapper trial(session, plan, other, choice.swapEvery);
    for (int i = 0; i < 2; ++i)
      CGC_TRY(trial.swap().withContext("--swap " + choice.swapPlan));
    swapper.emplace(session, plan, std::move(other), choice.swapEvery);
  }
  CGC_TRY(load.warmUp());
  progress.begin("bench under load");
  report.load = load.run();
  warnOfFailures(report.load, "under load");
  progress.begin("bench back to back");
  if (report.load.requests() > report.load.failures()) {
    CGC_ASSIGN_OR_RETURN(report.backToBack, load.backToBack(report.load.succeeded));
  }
  if (swapper) {
    progress.begin("bench with swaps");
    CGC_ASSIGN_OR_RETURN(report.swap, measureSwaps(load, *swapper, choice));
    warnOfFailures(report.swap->load, "with swaps");
  }
  return setting.json ? printJson("load", loadJson(report)) : printOut(loadText(report));
}

} // namespace cgc::tool
