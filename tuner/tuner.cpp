// tune(): tunes one bucket after another, and in a bucket one kind of GEMM after another.
#include "tuner/tuner.h"

#include "backend/lower_gemm.h"
#include "runtime/base/no_throw.h"
#include "runtime/exec/gpu.h"
#include "runtime/exec/requirements.h"
#include "runtime/kernels/kernel_table.h"
#include "tuner/bucket_graph.h"
#include "tuner/edited_bucket.h"

#include <algorithm>
#include <map>

namespace cgc::tuner {
namespace {

/// The most choices that are timed: the tiles that the backend's model ranks first, and the
/// algorithms that cuBLASLt's heuristic names first.
constexpr size_t kMostTiles = 20;
constexpr int kMostAlgorithms = 8;
/// Samples of each choice in the first round, of which the minimum counts.
constexpr int kSamples = 3;
/// The fastest choices are timed again, alternately, and their medians are compared.
constexpr size_t kFinalists = 4;
constexpr int kRounds = 9;
/// The least relative gain of the bucket's time for which the plan's own choice is replaced. Less
/// is noise.
constexpr double kLeastGain = 0.002;

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
  std::vector<double> micros; ///< Samples, sorted.

  double least() const { return micros.front(); }
  double median() const { return micros[micros.size() / 2]; }
  Status sample(BucketGraphs &graphs) {
    CGC_ASSIGN_OR_RETURN(const double time, graphs.time(*captured));
    micros.insert(std::ranges::upper_bound(micros, time), time);
    return Status::ok();
  }
};

class Tuner {
public:
  Tuner(const Engine::Impl &engine, const Gpu &gpu, const CublasLt *cublasLt)
      : engine_(engine), gpu_(gpu), cublasLt_(cublasLt),
        // A plan that runs on other GPUs gets no sm_90a code.
        mayUseTiles_(requirementsOf(engine.plan.data()).needsSm90a()) {}

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
    const auto arch = gpu_.major == 9 ? backend::Arch::Sm90a : backend::Arch::Sm80;
    EditedBucket edited(bucket, backend::libraryWorkspaceBytes(arch));
    std::optional<BucketGraphs> graphs; // Created when there is something to time.
    for (const LaunchRecord &record : bucket.records) {
      const auto site = gemmSite(record, bucket);
      if (!site)
        continue;
      const std::string description = describe(*site, bucket);
      if (const auto known = choices_.find(description); known != choices_.end()) {
        if (known->second)
          edited.setRecords(edited.recordsWith(description, *known->second));
        continue;
      }
      if (!graphs) {
        auto made = BucketGraphs::create(engine_, cublasLt_, edited.bucket());
        if (!made.isOk())
          return made.status();
        graphs.emplace(*std::move(made));
      }
      TunedGemm gemm;
      gemm.entry = entry;
      gemm.description = description;
      gemm.before = nameOf(record);
      CGC_ASSIGN_OR_RETURN(const auto choice,
                           choose(*site, description, record, edited, *graphs, gemm));
      if (choice)
        edited.setRecords(edited.recordsWith(description, *choice));
      choices_[description] = choice;
      report.push_back(std::move(gemm));
    }
    return std::move(edited).take();
  }

  /// The choices that can compute the GEMM. If cuBLASLt can, the first one is that of its
  /// heuristic.
  Result<std::vector<Choice>> choicesFor(const GemmSite &site, const LaunchRecord &record,
                                         const EditedBucket &edited,
                                         const BucketGraphs &graphs) const {
    std::vector<Choice> choices;
    if (cublasLt_ && site.isForLibrary()) {
      const auto call = std::get<LibraryCall>(
          opOf({std::vector<std::byte>(), ""}, site, record, edited.workspaceOf(record)));
      const Result<GemmCall> gemm = gemmCall(call, edited.bucket().tensors);
      if (gemm.isOk()) {
        auto found = cublasLt_->candidates(
            {*gemm, edited.bucket().tensors, [&](TensorId id) { return graphs.address(id); }},
            kMostAlgorithms);
        if (found.isOk())
          for (std::vector<std::byte> &algorithm : *found)
            choices.push_back(
                {std::move(algorithm), "cuBLASLt algorithm " + std::to_string(choices.size() + 1)});
      }
    }
    if (mayUseTiles_ && site.isForTile()) {
      auto tiles =
          backend::tileChoices(site.family.tiles, site.m, site.n, site.k, gpu_.multiprocessors);
      tiles.resize(std::min(tiles.size(), kMostTiles));
      for (const backend::TileChoice &tile : tiles)
        choices.push_back({tile, "tile " + std::string(tile.tile->name) + " with " +
                                     std::to_string(tile.stages) + " stages"});
    }
    return choices;
  }

  /// The fastest choice for the GEMM; nothing if that is the plan's own. Fills `report`.
  Result<std::optional<Choice>> choose(const GemmSite &site, const std::string &description,
                                       const LaunchRecord &record, const EditedBucket &edited,
                                       BucketGraphs &graphs, TunedGemm &report) const {
    Contender own;
    CGC_ASSIGN_OR_RETURN(own.captured, graphs.capture(edited.bucket().records));
    CGC_ASSIGN_OR_RETURN(std::vector<Choice> choices, choicesFor(site, record, edited, graphs));
    // Freezes what cuBLASLt would otherwise choose anew at each start.
    if (const auto *call = std::get_if<LibraryCall>(&record.op); call && !choices.empty())
      if (const auto *first = std::get_if<std::vector<std::byte>>(&choices[0].how);
          first && !isOfOneMachine(call->algorithm, *first))
        own.choice = choices[0];

    std::vector<Contender> contenders;
    for (Choice &choice : choices) {
      Contender contender{std::move(choice), nullptr, {}};
      auto captured = graphs.capture(edited.recordsWith(description, *contender.choice));
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

    Contender &before = contenders.back();
    Contender &best = *std::ranges::min_element(contenders, {}, &Contender::median);
    Contender &winner = best.median() < before.median() * (1 - kLeastGain) ? best : before;
    report.sites = edited.count(description);
    report.microsBefore = before.median();
    report.microsAfter = winner.median();
    report.after = winner.choice ? winner.choice->name : report.before;
    return std::move(winner.choice);
  }

  const Engine::Impl &engine_;
  const Gpu &gpu_;
  const CublasLt *cublasLt_; ///< Null if cuBLASLt cannot be used here.
  const bool mayUseTiles_;
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
    CGC_TRY(openOpLibraries(plan.data(), options.opLibraries).status());
    CGC_TRY(checkMachine());
    CGC_ASSIGN_OR_RETURN(const Gpu gpu, findGpu(options.device));
    CGC_ASSIGN_OR_RETURN(const Engine engine, Engine::create(plan, options));
    const DeviceGuard guard(gpu.index);
    std::vector<std::string> notes;
    std::unique_ptr<CublasLt> own;
    const CublasLt *cublasLt = engine.impl().cublasLt.get();
    if (!cublasLt) {
      auto opened = CublasLt::open(options.cublasLtPath);
      if (opened.isOk() && (*opened)->initialize(gpu).isOk())
        cublasLt = (own = *std::move(opened)).get();
      else
        notes.push_back("cuBLASLt is not tried: " +
                        (opened.isOk() ? "it cannot be started" : opened.status().message()));
    }
    CGC_ASSIGN_OR_RETURN(Tuned tuned, Tuner(engine.impl(), gpu, cublasLt).tune());
    tuned.notes = std::move(notes);
    return tuned;
  });
}

} // namespace cgc::tuner
