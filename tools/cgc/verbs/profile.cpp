// cgc profile: measures the time of each record of a plan, by op and by module.
#include "runtime/base/write_file.h"
#include "tools/cgc/cli/console.h"
#include "tools/cgc/cli/file_arguments.h"
#include "tools/cgc/cli/host_modules.h"
#include "tools/cgc/cli/libraries.h"
#include "tools/cgc/cli/progress.h"
#include "tools/cgc/io/inputs.h"
#include "tools/cgc/io/target_tensors.h"
#include "tools/cgc/report/plan_summary.h"
#include "tools/cgc/report/profile_rows.h"
#include "tools/cgc/verbs/runner.h"
#include "tools/cgc/verbs/verbs.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

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
  bool json = false;
};

struct BucketProfile {
  PlanBucket bucket;
  std::vector<ProfileRow> rows; ///< In the plan's order.
  double total() const {
    double sum = 0;
    for (const ProfileRow &row : rows)
      sum += row.micros;
    return sum;
  }
};

Result<BucketProfile> profileBucket(Runner &runner, const PlanBucket &chosen) {
  const PlanData &plan = runner.plan();
  const Bucket &bucket = chosen.bucket();
  CGC_ASSIGN_OR_RETURN(const auto inputs, TargetTensors::randomInputs(plan.target, bucket.inputs));
  CGC_ASSIGN_OR_RETURN(const auto outputs, TargetTensors::outputs(plan.target, bucket.outputs));
  for (size_t i = 0; i < kProfileWarmUps; ++i)
    CGC_TRY(runner.context().run(chosen.entry->name, inputs.views(), outputs.views()));
  CGC_ASSIGN_OR_RETURN(auto times,
                       runner.context().profile(chosen.entry->name, chosen.index, kProfileRuns));
  return BucketProfile{chosen, profileRows(plan, bucket, std::move(times))};
}

/// The profile in Chrome's trace format: one process for each bucket, with the records end to end.
std::string traceText(const std::vector<BucketProfile> &profiles) {
  Json events = Json::array();
  for (size_t pid = 0; pid < profiles.size(); ++pid) {
    const PlanBucket &bucket = profiles[pid].bucket;
    const std::string name = bucket.entry->name + " " + describeIo(bucket.bucket().inputs);
    events.push_back(
        {{"name", "process_name"}, {"ph", "M"}, {"pid", pid}, {"args", {{"name", name}}}});
    double start = 0;
    for (const ProfileRow &row : profiles[pid].rows) {
      events.push_back({{"name", row.op},
                        {"ph", "X"},
                        {"ts", start},
                        {"dur", row.micros},
                        {"pid", pid},
                        {"tid", 0},
                        {"args", {{"module", row.module}, {"source", row.source}}}});
      start += row.micros;
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

  Progress progress(1 + buckets.size());
  progress.begin("load " + options.plan);
  // The stream executor captures no graph here; profiling captures one with its events.
  CGC_ASSIGN_OR_RETURN(
      const auto runner,
      Runner::create(options.plan, options.opLibraries,
                     {.executor = ExecutorKind::Stream, .threads = options.threads},
                     /*separateBuffers=*/false, options.hostModules));
  std::vector<BucketProfile> profiles;
  for (const PlanBucket &bucket : buckets) {
    progress.begin(
        fmt::format("profile {} {}", bucket.entry->name, describeIo(bucket.bucket().inputs)));
    CGC_ASSIGN_OR_RETURN(BucketProfile one, profileBucket(*runner, bucket));
    profiles.push_back(std::move(one));
  }
  if (!options.trace.empty())
    CGC_TRY(writeFile(options.trace, traceText(profiles)));
  const bool cuda = runner->plan().target == DeviceKind::Cuda;
  return options.json ? printProfilesJson(options, profiles, cuda) : printProfiles(profiles, cuda);
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
  command->add_flag("--json", options->json, "Print the result as JSON");
  command->footer("Examples:\n"
                  "  cgc profile model.cgplan --entry encode_text\n"
                  "  cgc profile model.cgplan --entry encode_image --trace trace.json --json");
  return {command, [options] { return profile(*options); }, [options] { return options->json; }};
}

} // namespace cgc::tool
