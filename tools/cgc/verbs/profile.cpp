// cgc profile: measures the time of each record of a plan, by op and by module.
#include "runtime/base/write_file.h"
#include "runtime/exec/cuda_support.h"
#include "tools/cgc/cli/console.h"
#include "tools/cgc/cli/file_arguments.h"
#include "tools/cgc/cli/host_modules.h"
#include "tools/cgc/cli/libraries.h"
#include "tools/cgc/cli/progress.h"
#include "tools/cgc/io/inputs.h"
#include "tools/cgc/io/target_tensors.h"
#include "tools/cgc/report/plan_summary.h"
#include "tools/cgc/report/profile_rows.h"
#include "tools/cgc/train/training_ranks.h"
#include "tools/cgc/verbs/runner.h"
#include "tools/cgc/verbs/timing.h"
#include "tools/cgc/verbs/verbs.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace cgc::tool {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kProfileRuns = 50, kProfileWarmUps = 5;

struct ProfileFlags {
  std::string plan, trace;
  BucketChoice buckets;
  int threads = 0;
  std::vector<std::string> opLibraries;
  std::string hostModules;
  RankFlags ranks;
  bool json = false;
};

struct BucketProfile {
  PlanBucket bucket;
  std::vector<ProfileRow> rows;  ///< In the plan's order.
  std::vector<RecordSpan> spans; ///< Of each row, for a trace.
  double total() const {
    double sum = 0;
    for (const ProfileRow &row : rows)
      sum += row.micros;
    return sum;
  }
};

double medianOf(const std::vector<RecordSpan> &runs, double RecordSpan::*time) {
  std::vector<double> values;
  for (const RecordSpan &run : runs)
    values.push_back(run.*time);
  return Samples(std::move(values)).median();
}

Result<BucketProfile> profileBucket(Runner &runner, const PlanBucket &chosen, bool traces) {
  const PlanData &plan = runner.plan();
  const Bucket &bucket = chosen.bucket();
  CGC_ASSIGN_OR_RETURN(const auto inputs, TargetTensors::randomInputs(plan.target, bucket.inputs));
  CGC_ASSIGN_OR_RETURN(const auto outputs, TargetTensors::outputs(plan.target, bucket.outputs));
  for (size_t i = 0; i < kProfileWarmUps; ++i)
    CGC_TRY(runner.context().run(chosen.entry->name, inputs.views(), outputs.views()));
  CGC_ASSIGN_OR_RETURN(auto times,
                       runner.context().profile(chosen.entry->name, chosen.index, kProfileRuns));
  BucketProfile profile{chosen, profileRows(plan, bucket, std::move(times)), {}};
  if (traces) {
    CGC_ASSIGN_OR_RETURN(const auto spans,
                         runner.context().timeline(chosen.entry->name, chosen.index, kProfileRuns));
    for (const std::vector<RecordSpan> &runs : spans)
      profile.spans.push_back(
          {medianOf(runs, &RecordSpan::begin), medianOf(runs, &RecordSpan::end)});
  }
  return profile;
}

/// The profile in Chrome's trace format: one process for each bucket, one thread for each branch.
std::string traceText(const std::vector<BucketProfile> &profiles) {
  Json events = Json::array();
  for (size_t pid = 0; pid < profiles.size(); ++pid) {
    const auto nameIt = [&](const char *what, uint32_t tid, const std::string &name) {
      events.push_back(
          {{"name", what}, {"ph", "M"}, {"pid", pid}, {"tid", tid}, {"args", {{"name", name}}}});
    };
    const PlanBucket &bucket = profiles[pid].bucket;
    nameIt("process_name", 0, bucket.entry->name + " " + describeIo(bucket.bucket().inputs));
    std::set<uint32_t> branches;
    for (size_t i = 0; i < profiles[pid].rows.size(); ++i) {
      const ProfileRow &row = profiles[pid].rows[i];
      const RecordSpan &span = profiles[pid].spans[i];
      // Branch 1 goes on where branch 0 stops.
      const uint32_t branch = std::max(bucket.bucket().records[i].branch, 1u);
      if (branches.insert(branch).second)
        nameIt("thread_name", branch,
               branch == kCollectiveBranch ? "collectives"
               : branch == kUpdateBranch   ? "updates"
                                           : fmt::format("branch {}", branch));
      events.push_back({{"name", row.op},
                        {"ph", "X"},
                        {"ts", span.begin},
                        {"dur", span.end - span.begin},
                        {"pid", pid},
                        {"tid", branch},
                        {"args", {{"module", row.module}, {"source", row.source}}}});
    }
  }
  const Json trace = {{"traceEvents", std::move(events)}};
  return trace.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string describeMethod(bool cuda) {
  return fmt::format(
      "The median of {} runs of each record, on random inputs; {}.\n", kProfileRuns,
      cuda ? "between events inside a replayed graph, resolution 0.5 us.\nEvents make every edge "
             "plain: no kernel starts before the previous one has ended, so the sum exceeds the "
             "time of a run (cgc bench)"
           : "by the host's clock");
}

Status printProfiles(const std::vector<BucketProfile> &profiles, bool cuda) {
  std::string text;
  for (const BucketProfile &profile : profiles) {
    const double total = profile.total();
    text += fmt::format("{} {}: {} records, {:.1f} us\n\n", profile.bucket.entry->name,
                        describeIo(profile.bucket.bucket().inputs), profile.rows.size(), total);
    for (bool byModule : {false, true}) {
      std::vector<std::vector<std::string>> rows = {
          {"us", "%", "records", byModule ? "module" : "op"}};
      if (byModule)
        rows[0].push_back("source");
      for (const ProfileGroup &group : groupRows(profile.rows, byModule)) {
        rows.push_back({fmt::format("{:.1f}", group.micros),
                        fmt::format("{:.1f}", total > 0 ? 100 * group.micros / total : 0),
                        std::to_string(group.records), group.name.empty() ? "-" : group.name});
        if (byModule)
          rows.back().push_back(group.source);
      }
      text += formatTable(rows) + "\n";
    }
  }
  return printOut(text + describeMethod(cuda));
}

Json groupsJson(const std::vector<ProfileRow> &rows, bool byModule) {
  Json list = Json::array();
  for (const ProfileGroup &group : groupRows(rows, byModule)) {
    Json fields = {{byModule ? "module" : "op", group.name}};
    if (byModule)
      fields["source"] = group.source;
    fields["records"] = group.records;
    fields["us"] = group.micros;
    list.push_back(std::move(fields));
  }
  return list;
}

Status printProfilesJson(const ProfileFlags &options, const std::vector<BucketProfile> &profiles,
                         bool cuda) {
  Json buckets = Json::array();
  for (const BucketProfile &profile : profiles) {
    Json records = Json::array();
    for (const ProfileRow &row : profile.rows)
      records.push_back(
          {{"op", row.op}, {"module", row.module}, {"source", row.source}, {"us", row.micros}});
    buckets.push_back({{"entry", profile.bucket.entry->name},
                       {"bucket", profile.bucket.index},
                       {"inputs", describeIo(profile.bucket.bucket().inputs)},
                       {"total_us", profile.total()},
                       {"records", std::move(records)},
                       {"ops", groupsJson(profile.rows, false)},
                       {"modules", groupsJson(profile.rows, true)}});
  }
  return printJson("profile", {{"plan", options.plan},
                               {"target", deviceName(cuda ? DeviceKind::Cuda : DeviceKind::Cpu)},
                               {"runs", kProfileRuns},
                               {"plain_edges", cuda},
                               {"buckets", std::move(buckets)}});
}

/// Profiles as one of the ranks, which all make the same runs.
Status profileAsRank(const ProfileFlags &options, const std::vector<PlanBucket> &buckets, bool cuda,
                     TrainingRanks &ranks) {
  Progress progress(1 + buckets.size());
  progress.begin("load " + options.plan);
  const int device = cuda ? ranks.localRank() : -1;
  CGC_TRY(ranks.join(device));
  std::string runs;
  for (const PlanBucket &bucket : buckets)
    runs += fmt::format("{}[{}] of {} records, ", bucket.entry->name, bucket.index,
                        bucket.bucket().records.size());
  const SharedFact facts[] = {{"the buckets", runs},
                              {"--trace", options.trace.empty() ? "not given" : "given"}};
  CGC_TRY(ranks.agree(facts));
  const DeviceGuard guard(device);
  // Profiling captures a graph with its events. Only a trace needs the branches of that executor.
  const ExecutorKind executor = options.trace.empty() ? ExecutorKind::Stream : ExecutorKind::Graph;
  CGC_ASSIGN_OR_RETURN(const auto runner,
                       Runner::create(options.plan, options.opLibraries,
                                      {.executor = executor, .threads = options.threads},
                                      /*separateBuffers=*/false, options.hostModules,
                                      ranks.communicator(), std::max(device, 0)));
  std::vector<BucketProfile> profiles;
  for (const PlanBucket &bucket : buckets) {
    progress.begin(
        fmt::format("profile {} {}", bucket.entry->name, describeIo(bucket.bucket().inputs)));
    CGC_TRY(ranks.within("the profile", [&]() -> Status {
      CGC_ASSIGN_OR_RETURN(BucketProfile one,
                           profileBucket(*runner, bucket, !options.trace.empty()));
      profiles.push_back(std::move(one));
      return Status::ok();
    }));
  }
  if (!ranks.leads())
    return Status::ok();
  if (!options.trace.empty())
    CGC_TRY(writeFile(options.trace, traceText(profiles)));
  return options.json ? printProfilesJson(options, profiles, cuda) : printProfiles(profiles, cuda);
}

Status profile(const ProfileFlags &options) {
  CGC_ASSIGN_OR_RETURN(const Plan plan, Plan::load(options.plan, Plan::Verify::Metadata));
  CGC_TRY(checkThreads(plan.data(), options.threads));
  CGC_ASSIGN_OR_RETURN(const auto buckets, planBuckets(plan.data(), options.buckets));
  CGC_TRY(FileArguments()
              .reads(options.plan)
              .reads(options.opLibraries)
              .reads(options.hostModules)
              .writes("--trace", options.trace)
              .check());

  const bool cuda = plan.data().target == DeviceKind::Cuda;
  CGC_ASSIGN_OR_RETURN(TrainingRanks ranks, TrainingRanks::create(plan.data(), options.ranks));
  if (!ranks.leads())
    setQuiet(); // Rank 0 says what all of them do.
  return ranks.explain(profileAsRank(options, buckets, cuda, ranks));
}

} // namespace

Verb addProfile(CLI::App &app) {
  auto options = std::make_shared<ProfileFlags>();
  CLI::App *command = app.add_subcommand("profile", "Measure the time of each record of a plan");
  command->add_option("plan", options->plan, "The plan")->type_name("PLAN")->required();
  addBucketOptions(*command, options->buckets, "Profile");
  command
      ->add_option("--trace", options->trace,
                   "Write a trace that Perfetto and chrome://tracing show")
      ->type_name("F")
      ->check(requireName);
  refuseExecutorOption(*command);
  addThreadsOption(*command, options->threads);
  addOpLibraryOption(*command, options->opLibraries);
  addHostModulesOption(*command, options->hostModules);
  addRankOptions(*command, options->ranks);
  command->add_flag("--json", options->json, "Print the result as JSON");
  command->footer("Examples:\n"
                  "  cgc profile model.cgplan --entry encode_text\n"
                  "  cgc profile model.cgplan --entry encode_image --trace trace.json --json");
  return {command, [options] { return profile(*options); }, [options] { return options->json; }};
}

} // namespace cgc::tool
