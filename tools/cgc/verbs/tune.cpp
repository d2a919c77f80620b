// cgc tune: times the kernels of a plan's GEMMs on this machine's GPU and keeps the fastest.
#include "tools/cgc/verbs/tune.h"

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

struct Options {
  std::string plan, output;
  std::vector<std::string> opLibraries;
  bool json = false;
};

Status print(const Options &options, const std::string &output, const tuner::Tuned &tuned) {
  const TargetGpu &gpu = *tuned.plan.gpu;
  if (options.json) {
    nlohmann::ordered_json products = nlohmann::ordered_json::array();
    for (const tuner::TunedProduct &product : tuned.products)
      products.push_back({{"entry", product.entry},
                          {"product", product.product},
                          {"sites", product.sites},
                          {"tried", product.tried},
                          {"before", product.before},
                          {"after", product.after},
                          {"bucket_us_before", product.microsBefore},
                          {"bucket_us_after", product.microsAfter}});
    return printJson("tune", {{"plan", options.plan},
                              {"output", output},
                              {"gpu", gpu.name},
                              {"multiprocessors", gpu.multiprocessors},
                              {"products", std::move(products)}});
  }
  std::vector<std::vector<std::string>> rows = {
      {"entry", "product", "sites", "tried", "before", "after", "bucket, us", "tuned"}};
  for (const tuner::TunedProduct &product : tuned.products)
    rows.push_back({product.entry, product.product, std::to_string(product.sites),
                    std::to_string(product.tried), product.before, product.after,
                    fmt::format("{:.1f}", product.microsBefore),
                    fmt::format("{:.1f}", product.microsAfter)});
  return printOut(fmt::format("{}: tuned on {} ({} SMs)\n\n{}", output, gpu.name,
                              gpu.multiprocessors, formatTable(rows)));
}

Status tune(const Options &options) {
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
  auto options = std::make_shared<Options>();
  CLI::App *command =
      app.add_subcommand("tune", "Time each product's kernels on this GPU and keep the fastest");
  command->add_option("plan", options->plan, "The plan, for target cuda")
      ->type_name("PLAN")
      ->required();
  command->add_option("-o,--output", options->output, "The plan to write [replaces PLAN]")
      ->type_name("OUT.cgplan")
      ->check(requireName);
  addOpLibraryOption(*command, options->opLibraries);
  command->add_flag("--json", options->json, "Print the result as JSON");
  command->footer("Every kernel and cuBLASLt algorithm that may compute a product is timed inside "
                  "the captured graph\nof its bucket. Needs the GPU that the plan will run on; "
                  "weights do not change.\n\n"
                  "Examples:\n"
                  "  cgc tune model.cgplan\n"
                  "  cgc tune model.cgplan -o tuned.cgplan --json");
  return {command, [options] { return tune(*options); }, [options] { return options->json; }};
}

} // namespace cgc::tool
