// cgc tune: times the kernels of a plan's GEMMs on this machine's GPU and keeps the fastest.
#include "tools/cgc/verbs/tune.h"
#include "tools/cgc/verbs/runner.h"

#include "tools/cgc/cli/console.h"
#include "tools/cgc/cli/file_arguments.h"
#include "tools/cgc/cli/libraries.h"
#include "tools/cgc/verbs/verbs.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cgc::tool {

Result<tuner::Tuned> tunePlan(const Plan &plan, const std::vector<std::string> &opLibraries,
                              Progress &progress) {
  progress.begin("tune");
  auto tuned = tuner::tune(plan, {.providerPath = providerPath(), .opLibraries = opLibraries});
  if (tuned.isOk())
    for (const std::string &note : tuned->notes)
      logInfo(note);
  return tuned;
}

namespace {

struct TuneFlags {
  std::string plan, output;
  std::vector<std::string> opLibraries;
  bool json = false;
};

Status print(const TuneFlags &options, const std::string &output, const tuner::Tuned &tuned) {
  const TargetGpu &gpu = *tuned.plan.gpu;
  if (options.json) {
    nlohmann::ordered_json gemms = nlohmann::ordered_json::array();
    for (const tuner::TunedGemm &gemm : tuned.gemms)
      gemms.push_back({{"entry", gemm.entry},
                       {"gemm", gemm.description},
                       {"sites", gemm.sites},
                       {"tried", gemm.tried},
                       {"before", gemm.before},
                       {"after", gemm.after},
                       {"bucket_us_before", gemm.microsBefore},
                       {"bucket_us_after", gemm.microsAfter}});
    return printJson("tune", {{"plan", options.plan},
                              {"output", output},
                              {"gpu", gpu.name},
                              {"multiprocessors", gpu.multiprocessors},
                              {"gemms", std::move(gemms)}});
  }
  std::vector<std::vector<std::string>> rows = {
      {"entry", "gemm", "sites", "tried", "before", "after", "bucket, us", "tuned"}};
  for (const tuner::TunedGemm &gemm : tuned.gemms)
    rows.push_back({gemm.entry, gemm.description, std::to_string(gemm.sites),
                    std::to_string(gemm.tried), gemm.before, gemm.after,
                    fmt::format("{:.1f}", gemm.microsBefore),
                    fmt::format("{:.1f}", gemm.microsAfter)});
  return printOut(fmt::format("{}: tuned on {} ({} SMs)\n\n{}", output, gpu.name,
                              gpu.multiprocessors, formatTable(rows)));
}

Status tune(const TuneFlags &options) {
  const std::string output = options.output.empty() ? options.plan : options.output;
  CGC_ASSIGN_OR_RETURN(const Plan plan, Plan::load(options.plan));
  CGC_TRY(FileArguments()
              .reads(options.plan)
              .reads(options.opLibraries)
              .writes("-o", output, /*replaced=*/options.plan)
              .check());
  noteUnusedOpLibraries(plan.data(), options.opLibraries);
  Progress progress(3);
  progress.begin("load " + options.plan);
  CGC_ASSIGN_OR_RETURN(const tuner::Tuned tuned, tunePlan(plan, options.opLibraries, progress));
  progress.begin("write " + output);
  std::vector<std::span<const std::byte>> weights;
  for (size_t i = 0; i < plan.data().weights.size(); ++i)
    weights.push_back(plan.weightBytes(i));
  CGC_TRY(writePlan(tuned.plan, weights, output));
  // Text after the plan would corrupt it.
  return isStandardOutput(output) ? Status::ok() : print(options, output, tuned);
}

} // namespace

Verb addTune(CLI::App &app) {
  auto options = std::make_shared<TuneFlags>();
  CLI::App *command =
      app.add_subcommand("tune", "Time each GEMM's kernels on this GPU and keep the fastest");
  command->add_option("plan", options->plan, "The plan, for target cuda")
      ->type_name("PLAN")
      ->required();
  command->add_option("-o,--output", options->output, "The plan to write [replaces PLAN]")
      ->type_name("OUT.cgplan")
      ->check(requireName);
  refuseExecutorOption(*command);
  addOpLibraryOption(*command, options->opLibraries);
  command->add_flag("--json", options->json, "Print the result as JSON");
  command->footer("Every kernel and cuBLASLt algorithm that may compute a GEMM is timed inside "
                  "the captured graph\nof its bucket. Needs the GPU that the plan will run on; "
                  "weights do not change.\n\n"
                  "Examples:\n"
                  "  cgc tune model.cgplan\n"
                  "  cgc tune model.cgplan -o tuned.cgplan --json");
  return {command, [options] { return tune(*options); }, [options] { return options->json; }};
}

} // namespace cgc::tool
