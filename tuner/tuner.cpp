// tune(): tunes one bucket after another, and in a bucket one kind of GEMM after another.
#include "tuner/tuner.h"

#include "backend/gemm_record.h"
#include "runtime/base/no_throw.h"
#include "runtime/exec/engine_impl.h"
#include "runtime/exec/gpu.h"
#include "runtime/exec/requirements.h"
#include "runtime/plan/gemm_call.h"
#include "tuner/bucket_graph.h"
#include "tuner/decisions.h"
#include "tuner/edited_bucket.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace cgc::tuner {
namespace {

/// The most choices that are timed: the kernels that the backend ranks first, and the algorithms
/// that cuBLASLt's heuristic names first.
constexpr size_t kMaxKernels = 20;
constexpr int kMostAlgorithms = 8;
/// Samples of each choice in the first round, of which the minimum counts.
constexpr int kSamples = 3;
/// The fastest choices are timed again, alternately, and their medians are compared.
constexpr size_t kFinalists = 4;
constexpr int kRounds = 9;
/// A way to compute a GEMM and its name in a report.
struct Choice {
  backend::GemmChoice how;
  std::string name; ///< "tile 128x88_2 with 6 stages", "cuBLASLt algorithm 3"
};

/// The choice for each description of a GEMM; nothing: the plan's own.
using Choices = std::map<std::string, std::optional<Choice>>;

/// Whether both are algorithms of the same version of cuBLASLt, for the same GPU.
bool isOfOneMachine(std::span<const std::byte> a, std::span<const std::byte> b) {
  const auto first = decodeAlgorithm(a), second = decodeAlgorithm(b);
  return first && second && first->version == second->version && first->gpu == second->gpu &&
         first->multiprocessors == second->multiprocessors;
}

/// A choice, its captured graph and its samples.
struct Contender {
  std::optional<Choice> choice; ///< Nothing: the plan's own.
  std::unique_ptr<CapturedBucket> captured;
  std::vector<double> micros; ///< Samples.

  double least() const { return std::ranges::min(micros); }
  Status sample(BucketGraphs &graphs) {
    CGC_ASSIGN_OR_RETURN(const double time, graphs.time(*captured));
    micros.push_back(time);
    return Status::ok();
  }
};

/// The name of the op of a GEMM's record in a report, like Choice::name.
std::string nameOf(const LaunchRecord &record) {
  if (const auto *launch = std::get_if<KernelLaunch>(&record.op)) {
    if (launch->kernel.starts_with("gemm_f32_") || launch->kernel.starts_with("gemm_sgd_f32_"))
      return launch->kernel;
    return launch->kernel + " with " + std::to_string(launch->sharedBytes >> 10) + " KiB";
  }
  const auto &call = std::get<LibraryCall>(record.op);
  return call.algorithm.empty() ? "cuBLASLt's heuristic" : "cuBLASLt, tuned";
}

class Tuner {
public:
  Tuner(const Engine::Impl &engine, const Gpu &gpu, const CublasLt *cublasLt,
        const PlanStates &states)
      : engine_(engine), gpu_(gpu), cublasLt_(cublasLt), states_(states),
        planArch_(archOf(engine.plan.data())),
        machineArch_(gpu.major == 9 ? backend::Arch::Sm90a : backend::Arch::Sm80) {}

  Result<Tuned> tune() {
    Tuned tuned;
    tuned.plan = engine_.plan.data();
    // Small graphs first: a GEMM has a larger share of their time.
    std::vector<std::pair<Entry *, size_t>> buckets;
    for (Entry &entry : tuned.plan.entries)
      for (size_t i = 0; i < entry.buckets.size(); ++i)
        buckets.emplace_back(&entry, i);
    std::ranges::stable_sort(
        buckets, {}, [](const auto &at) { return at.first->buckets[at.second].records.size(); });
    for (const auto &[entry, index] : buckets) {
      auto bucket = tuneBucket(entry->name, entry->buckets[index], tuned.gemms);
      if (!bucket.isOk())
        return bucket.status().withContext("entry '" + entry->name + "', bucket " +
                                           std::to_string(index));
      entry->buckets[index] = *std::move(bucket);
    }
    tuned.plan.gpu = {gpu_.name, uint32_t(gpu_.multiprocessors), true};
    return tuned;
  }

private:
  Result<Bucket> tuneBucket(const std::string &entry, const Bucket &bucket,
                            std::vector<TunedGemm> &report) {
    EditedBucket edited(bucket, backend::libraryWorkspaceBytes(machineArch_));
    std::optional<BucketGraphs> graphs; // Created when there is something to time.
    for (const LaunchRecord &record : bucket.records) {
      const auto made = backend::decodeGemm(record, bucket);
      if (!made)
        continue;
      const std::string description = describe(made->problem);
      if (const auto known = choices_.find(description); known != choices_.end()) {
        if (known->second)
          edited.setRecords(edited.recordsWith(description, known->second->how));
        continue;
      }
      if (!graphs) {
        auto created = BucketGraphs::create(engine_, cublasLt_, states_, edited.bucket());
        if (!created.isOk())
          return created.status();
        graphs.emplace(*std::move(created));
      }
      TunedGemm gemm;
      gemm.entry = entry;
      gemm.description = description;
      gemm.before = nameOf(record);
      CGC_ASSIGN_OR_RETURN(const auto choice,
                           choose(*made, description, record, edited, *graphs, gemm));
      if (choice)
        edited.setRecords(edited.recordsWith(description, choice->how));
      choices_[description] = choice;
      report.push_back(std::move(gemm));
    }
    graphs.reset(); // Frees its memory.
    return measured(std::move(edited).take());
  }

  /// Returns the bucket with its time, the median of several samples. A bucket that cannot be
  /// captured keeps its estimate.
  Result<Bucket> measured(Bucket bucket) const {
    if (bucket.records.empty())
      return bucket;
    CGC_ASSIGN_OR_RETURN(BucketGraphs graphs,
                         BucketGraphs::create(engine_, cublasLt_, states_, bucket));
    Contender contender;
    auto captured = graphs.capture(bucket.records, /*inBranches=*/true);
    if (!captured.isOk())
      return bucket;
    contender.captured = *std::move(captured);
    for (int round = 0; round < kRounds; ++round)
      CGC_TRY(contender.sample(graphs));
    bucket.expectedMicros = median(contender.micros);
    bucket.isMeasured = true;
    return bucket;
  }

  /// The algorithms of cuBLASLt for the GEMM, that of its heuristic first.
  std::vector<Choice> algorithmsFor(backend::GemmRecord gemm, const LaunchRecord &record,
                                    const EditedBucket &edited, const BucketGraphs &graphs) const {
    gemm.choice = backend::GemmLibraryChoice{};
    gemm.workspace = edited.workspaceOf(record);
    const auto call = std::get<LibraryCall>(encodeGemm(gemm));
    const Result<GemmCall> valid = gemmCall(call, edited.bucket().tensors);
    if (!cublasLt_ || !valid.isOk())
      return {};
    auto found = cublasLt_->candidates(
        {*valid, edited.bucket().tensors, [&](TensorId id) { return graphs.address(id); }},
        kMostAlgorithms);
    std::vector<Choice> choices;
    if (found.isOk())
      for (std::vector<std::byte> &algorithm : *found)
        choices.push_back({backend::GemmLibraryChoice{std::move(algorithm)},
                           "cuBLASLt algorithm " + std::to_string(choices.size() + 1)});
    return choices;
  }

  /// The choices that can compute the GEMM: algorithms of cuBLASLt, if it computes all, then the
  /// kernels that the backend ranks first.
  std::vector<Choice> choicesFor(const backend::GemmRecord &gemm, const LaunchRecord &record,
                                 const EditedBucket &edited, const BucketGraphs &graphs) const {
    std::vector<Choice> choices, kernels;
    const auto addKernel = [&](const auto &kernel) {
      if (kernels.size() < kMaxKernels)
        kernels.push_back({kernel, kernel.name()});
    };
    for (const backend::GemmChoice &candidate :
         gemmCandidates(gemm.problem, {planArch_, gpu_.multiprocessors})) {
      if (const auto *kernel = std::get_if<backend::GemmKernelChoice>(&candidate))
        addKernel(*kernel);
      else if (const auto *f32 = std::get_if<backend::GemmF32Choice>(&candidate))
        addKernel(*f32);
      else if (fusedPart(gemm.problem, candidate) == gemm.problem)
        choices = algorithmsFor(gemm, record, edited, graphs);
    }
    std::ranges::move(kernels, std::back_inserter(choices));
    return choices;
  }

  /// The fastest choice for the GEMM; nothing if that is the plan's own. Fills `report`.
  Result<std::optional<Choice>> choose(const backend::GemmRecord &gemm,
                                       const std::string &description, const LaunchRecord &record,
                                       const EditedBucket &edited, BucketGraphs &graphs,
                                       TunedGemm &report) const {
    Contender own;
    CGC_ASSIGN_OR_RETURN(own.captured, graphs.capture(edited.bucket().records));
    std::vector<Choice> choices = choicesFor(gemm, record, edited, graphs);
    // Freezes what cuBLASLt would otherwise choose anew at each start.
    if (const auto *call = std::get_if<LibraryCall>(&record.op); call && !choices.empty())
      if (const auto *first = std::get_if<backend::GemmLibraryChoice>(&choices[0].how);
          first && !isOfOneMachine(call->algorithm, first->algorithm))
        own.choice = choices[0];

    std::vector<Contender> contenders;
    for (Choice &choice : choices) {
      Contender contender{std::move(choice), nullptr, {}};
      auto captured = graphs.capture(edited.recordsWith(description, contender.choice->how));
      if (!captured.isOk())
        continue; // Its bind function or the library refuses these operands.
      contender.captured = *std::move(captured);
      for (int i = 0; i < kSamples; ++i)
        CGC_TRY(contender.sample(graphs));
      contenders.push_back(std::move(contender));
      std::ranges::stable_sort(contenders, {}, &Contender::least);
      if (contenders.size() > kFinalists)
        contenders.pop_back();
      ++report.tried;
    }
    for (Contender &contender : contenders)
      contender.micros.clear();
    contenders.push_back(std::move(own));
    for (int round = 0; round < kRounds; ++round)
      for (Contender &contender : contenders)
        CGC_TRY(contender.sample(graphs));

    std::vector<std::vector<double>> samples;
    for (const Contender &contender : contenders)
      samples.push_back(contender.micros);
    Contender &winner = contenders[winnerOf(samples)];
    report.sites = edited.count(description);
    report.microsBefore = median(samples.back());
    report.microsAfter = median(winner.micros);
    report.after = winner.choice ? winner.choice->name : report.before;
    return std::move(winner.choice);
  }

  const Engine::Impl &engine_;
  const Gpu &gpu_;
  const CublasLt *cublasLt_; ///< Null if cuBLASLt cannot be used here.
  const PlanStates &states_;
  /// cuBLASLt chooses its code at run time, and its workspace fits the machine.
  const backend::Arch planArch_, machineArch_;
  Choices choices_;
};

} // namespace

Status checkMachine() {
  return findGpu(0, {"tuning times each GEMM on a GPU",
                     "run `cgc tune PLAN` where there is one; compiling without --tune needs none"})
      .status();
}

Result<Tuned> tune(const Plan &plan, const EngineOptions &options) {
  return noThrow([&]() -> Result<Tuned> {
    if (plan.data().target != DeviceKind::Cuda)
      return Status(Code::Usage, "the plan has target cpu, and there is nothing to tune in it; "
                                 "compile it with --target cuda");
    // First the errors that do not depend on the machine.
    if (const auto functions = requirementsOf(plan.data()).hostFunctions; !functions.empty())
      return Status(Code::Unsupported,
                    "the plan calls the host function '" + functions.begin()->first +
                        "', and tuning times buckets that are one graph; compile without "
                        "--host-module to tune");
    CGC_TRY(openOpLibraries(plan.data(), options.opLibraries).status());
    CGC_TRY(checkMachine());
    CGC_ASSIGN_OR_RETURN(const Gpu gpu, findGpu(options.device));
    CGC_ASSIGN_OR_RETURN(const Engine engine, Engine::create(plan, options));
    const DeviceGuard guard(gpu.index);
    std::vector<std::string> notes;
    std::unique_ptr<CublasLt> own;
    const CublasLt *cublasLt = implOf(engine).cublasLt.get();
    if (!cublasLt) {
      auto opened = CublasLt::open(options.cublasLtPath);
      if (opened.isOk() && (*opened)->initialize(gpu).isOk())
        cublasLt = (own = *std::move(opened)).get();
      else
        notes.push_back("cuBLASLt is not tried: " +
                        (opened.isOk() ? "it cannot be started" : opened.status().message()));
    }
    CGC_ASSIGN_OR_RETURN(const PlanStates states, PlanStates::create(plan));
    CGC_ASSIGN_OR_RETURN(Tuned tuned, Tuner(implOf(engine), gpu, cublasLt, states).tune());
    tuned.notes = std::move(notes);
    return tuned;
  });
}

} // namespace cgc::tuner
