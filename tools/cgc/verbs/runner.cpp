// Runner: creates plan, engine and context, and runs buckets.
#include "tools/cgc/verbs/runner.h"

#include "runtime/base/training_names.h"
#include "runtime/exec/context_impl.h"
#include "runtime/exec/requirements.h"
#include "runtime/kernels/reference.h"
#include "runtime/session/request.h"
#include "runtime/train/model_file.h"
#include "tools/cgc/cli/console.h"
#include "tools/cgc/cli/host_modules.h"
#include "tools/cgc/cli/libraries.h"

#include <CLI/CLI.hpp>

namespace cgc::tool {

namespace {

/// The error for the reference executor in a verb that measures.
const char *const kNoTimes = "the reference executor is for results: its times say nothing about a "
                             "GPU";

} // namespace

void addExecutorOption(CLI::App &command, std::string &name) {
  command
      .add_option("--executor", name,
                  "graph replays a captured CUDA graph, stream launches one by one, reference runs "
                  "a cuda plan without a GPU, slowly; cpu plans always run one by one")
      ->check(CLI::IsMember({"graph", "stream", "reference"}))
      ->capture_default_str();
}

void addTimedExecutorOption(CLI::App &command, std::string &name) {
  command
      .add_option("--executor", name,
                  "graph replays a captured CUDA graph, stream launches one by one; cpu plans "
                  "always run one by one")
      ->check([](const std::string &value) {
        return value == "reference" ? std::string(kNoTimes) + "; choose graph or stream" : "";
      })
      ->check(CLI::IsMember({"graph", "stream"}))
      ->capture_default_str();
}

void refuseExecutorOption(CLI::App &command) {
  const auto refuse = [](const std::string &value) {
    const std::string why =
        value == "reference" ? kNoTimes : "this verb chooses the executor itself";
    // CLI11 does not put the name of a hidden option into its own errors.
    throw CLI::ValidationError("--executor", why + "; leave it out");
  };
  command.add_option_function<std::string>("--executor", refuse)->group(""); // Not in the help.
}

CLI::Option *addThreadsOption(CLI::App &command, int &threads) {
  return command
      .add_option("--threads", threads,
                  "Threads that LibTorch computes a cpu plan's records with [one for each core, or "
                  "OMP_NUM_THREADS]")
      ->type_name("N")
      ->check(CLI::Range(1, kMaxIntraOpThreads));
}

Status checkThreads(const PlanData &plan, int threads, ExecutorKind executor) {
  if (threads == 0 || plan.target == DeviceKind::Cpu || executor == ExecutorKind::Reference)
    return Status::ok();
  return {Code::Usage, "--threads is for plans with target cpu, and this one's is cuda: leave it "
                       "out"};
}

ExecutorKind executorOf(const std::string &name) {
  return name == "reference" ? ExecutorKind::Reference
         : name == "stream"  ? ExecutorKind::Stream
                             : ExecutorKind::Graph;
}

Result<std::unique_ptr<Runner>>
Runner::create(const std::string &path, const std::vector<std::string> &opLibraries,
               ContextOptions options, bool separateBuffers, const std::string &hostModules,
               std::shared_ptr<Communicator> communicator, int device) {
  CGC_ASSIGN_OR_RETURN(Plan plan, Plan::load(path));
  noteUnusedOpLibraries(plan.data(), opLibraries);
  std::unique_ptr<Runner> runner(new Runner(std::move(plan)));
  const ExecutorKind executor = options.executor.value_or(ExecutorKind::Graph);
  CGC_ASSIGN_OR_RETURN(auto hostFunctions, hostFunctionsOf(runner->plan(), hostModules,
                                                           executor == ExecutorKind::Reference
                                                               ? DeviceKind::Cpu
                                                               : runner->plan().target));
  EngineOptions engine;
  engine.executor = executor;
  engine.opLibraries = opLibraries;
  engine.hostFunctions = std::move(hostFunctions);
  engine.separateBuffers = separateBuffers;
  engine.communicator = std::move(communicator);
  engine.device = device;
  CGC_TRY(runner->prepare(std::move(engine), options));
  return runner;
}

Status Runner::prepareAll(const std::string &path, ExecutorKind executor) {
  CGC_ASSIGN_OR_RETURN(Plan plan, Plan::load(path));
  EngineOptions engine;
  engine.executor = executor;
  for (const auto &[name, location] : requirementsOf(plan.data()).hostFunctions)
    engine.hostFunctions.push_back(
        {name, [](auto, auto, void *) { return Status(Code::Failed, "nothing may run"); }});
  return Runner(std::move(plan)).prepare(std::move(engine), {.executor = executor});
}

Status Runner::prepare(EngineOptions engine, const ContextOptions &context) {
  engine.providerPath = providerPath();
  engine.referencePath = libraryPath(kReferenceLibrary);
  CGC_ASSIGN_OR_RETURN(Engine created, Engine::create(plan_, std::move(engine)));
  engine_.emplace(std::move(created));
  CGC_ASSIGN_OR_RETURN(Context prepared, Context::create(*engine_, context));
  context_.emplace(std::move(prepared));
  for (const std::string &note : context_->notes())
    logInfo(note);
  return refreshCopies();
}

Status Runner::refreshCopies() {
  if (plan_.data().findEntry(kRefreshEntry)) {
    int64_t steps = 0;
    const TensorView output{&steps, DType::I64, DeviceKind::Cpu, {}, {}};
    CGC_TRY(context_->run(kRefreshEntry, {}, {&output, 1}));
  }
  return Status::ok();
}

Status Runner::loadWeights(const std::string &path) {
  std::vector<FileTensor> tensors;
  for (const State &state : plan_.data().states)
    if (state.role == StateRole::Parameter || state.role == StateRole::Buffer)
      tensors.push_back({state.name, &state});
  if (tensors.empty())
    return {Code::Usage, "the plan has no states that a checkpoint could set: give a plan of cgc "
                         "compile --train"};
  CGC_ASSIGN_OR_RETURN(
      const ModelFile file,
      ModelFile::open(path, tensors,
                      {.prefix = "to be those of the compiled module's state_dict"}));
  CGC_TRY(file.forEach([&](size_t i, std::span<const std::byte> bytes) {
    const State &state = *tensors[i].state;
    return context_->writeState(state.name, viewOf(state, bytes));
  }));
  return refreshCopies();
}

Result<std::vector<HostTensor>> Runner::run(const Entry &entry, size_t bucket,
                                            std::vector<HostTensor> &inputs) {
  std::vector<HostTensor> outputs;
  for (const IoTensor &output : entry.buckets[bucket].outputs)
    outputs.push_back(makeTensor(output.name, output.dtype, output.sizes));
  CGC_TRY(context_->run(entry.name, viewsOf(inputs), viewsOf(outputs)));
  return outputs;
}

Result<std::vector<HostTensor>> Runner::run(const Entry &entry, BoundInputs &inputs) {
  if (!inputs.rows)
    return run(entry, inputs.bucket, inputs.tensors);
  std::vector<HostTensor> outputs;
  for (const IoTensor &output : entry.buckets[inputs.bucket].outputs) {
    std::vector<int64_t> sizes = output.sizes;
    if (output.batchDim != kNoBatchDim)
      sizes[static_cast<size_t>(output.batchDim)] = *inputs.rows;
    outputs.push_back(makeTensor(output.name, output.dtype, std::move(sizes)));
  }
  const std::vector<TensorView> from = viewsOf(inputs.tensors), to = viewsOf(outputs);
  const RequestTable table(plan(), *inputs.rows);
  Context::Impl &context = implOf(*context_);
  CGC_ASSIGN_OR_RETURN(const Request request, table.find(entry.name, from, to, context.device));
  std::vector<BucketRun> runs;
  request.runs(runs);
  CGC_TRY(context.run(request.entry, runs, from, to, /*callers=*/nullptr));
  return outputs;
}

} // namespace cgc::tool
