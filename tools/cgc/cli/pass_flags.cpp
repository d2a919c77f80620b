// Pass flags: declares the options about passes and interprets their values.
#include "tools/cgc/cli/pass_flags.h"

#include "passes/pipeline.h"
#include "tools/cgc/cli/console.h"
#include "tools/cgc/cli/list_option.h"
#include "tools/cgc/cli/version.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <filesystem>
#include <limits>

namespace cgc::tool {
namespace {

std::string linesOf(llvm::ArrayRef<passes::DefaultPass> table) {
  std::string lines;
  for (const passes::DefaultPass &row : table) {
    std::string conditions = row.entries.name.str();
    if (!row.when.name.empty())
      conditions += (conditions.empty() ? "" : "; ") + row.when.name.str();
    lines += fmt::format("  {:<20} {}{}\n", row.pass.str(), row.reason.str(),
                         conditions.empty() ? "" : " (" + conditions + ")");
  }
  return lines;
}

} // namespace

std::string defaultPassesText() {
  return "Default passes of cgc compile:\n" + linesOf(passes::inferenceTable()) +
         "\nThen for cuda from -O1 on:\n" + linesOf(passes::selectionTable()) +
         "\nDefault passes of cgc compile --train, by entry of the plan:\n" +
         linesOf(passes::trainingTable());
}

void addPassOptions(CLI::App &command, passes::InstrumentationOptions &options) {
  const std::string group = "Debugging passes (on stderr)";
  command.add_flag("--print-after-all", options.printAfterAll, "Print the IR after each pass")
      ->group(group);
  addListOption(command, "--print-after", options.printAfter, "Print the IR after these passes")
      ->type_name("PASS,...")
      ->group(group);
  command
      .add_option("--dump-dir", options.dumpDir,
                  "Write numbered .cgir and .dot files after each pass")
      ->type_name("DIR")
      ->check(requireName)
      ->group(group);
  command
      .add_flag("--print-changed", options.printChanged, "Print the lines that each pass changes")
      ->group(group);
  command
      .add_option(
          "--pass-limit", options.passLimit,
          "Skip all pass runs after the first N except the required ones, and number them, to "
          "bisect a wrong result")
      ->type_name("N")
      ->check(CLI::Range(0u, std::numeric_limits<unsigned>::max()))
      ->group(group);
  command
      .add_option("--crash-reproducer", options.crashReproducer,
                  "Where to save the IR before a pass that fails or crashes, for cgc opt "
                  "--run-reproducer")
      ->type_name("F.cgir")
      ->check(requireName)
      ->group(group);
  command
      .add_option("--explain", options.explain,
                  "Print each op that the patterns of this pass are for and do not match, and the "
                  "condition that it fails")
      ->type_name("PASS")
      ->check(requireName)
      ->group(group);
  command.add_flag("--time-passes", options.timePasses, "Print a table of how long each pass took")
      ->group(group);
}

void addPrecisionOption(CLI::App &command, std::string &name) {
  command
      .add_option("--precision", name,
                  "Dtype of parameters, casts, inputs and outputs that are floats; keep leaves the "
                  "model's own, tf32 is fp32 with GEMMs that round their operands (cuda)")
      ->check(CLI::IsMember({"keep", "fp16", "bf16", "fp32", "tf32"}))
      ->capture_default_str();
}

std::optional<DType> precisionOf(const std::string &name) {
  if (name == "fp16")
    return DType::F16;
  if (name == "bf16")
    return DType::BF16;
  return name == "fp32" || name == "tf32" ? std::optional(DType::F32) : std::nullopt;
}

passes::InstrumentationOptions withOrigin(passes::InstrumentationOptions options,
                                          std::vector<passes::UsedPlugin> plugins) {
  options.origin.producer = versionText();
  options.origin.plugins = std::move(plugins);
  return options;
}

Status withReproducer(Status status, const passes::InstrumentationOptions &options) {
  std::error_code ignored;
  if (!status.isOk() && std::filesystem::exists(options.crashReproducer, ignored))
    logInfo(fmt::format("'{0}' holds the IR before the pass that failed; run that pass again: "
                        "cgc opt --run-reproducer {0}",
                        options.crashReproducer));
  return status;
}

} // namespace cgc::tool
