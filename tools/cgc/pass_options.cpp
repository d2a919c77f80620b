// Options about passes.
#include "tools/cgc/pass_options.h"

#include <CLI/CLI.hpp>

namespace cgc::tool {

void addPassOptions(CLI::App &command, passes::InstrumentationOptions &options) {
  const std::string group = "Looking at passes (on stderr)";
  command.add_flag("--print-after-all", options.printAfterAll, "Print the IR after each pass")
      ->group(group);
  command.add_option("--print-after", options.printAfter, "Print the IR after these passes")
      ->type_name("PASS,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group(group);
  command
      .add_option("--dump-dir", options.dumpDir,
                  "Write numbered .cgir and .dot files after each pass")
      ->type_name("DIR")
      ->group(group);
  command.add_flag("--time-passes", options.timePasses, "Print how long each pass took")
      ->group(group);
}

void addPrecisionOption(CLI::App &command, std::string &name) {
  command
      .add_option("--precision", name,
                  "What floats become: parameters, casts, inputs and outputs; keep leaves the "
                  "model's own")
      ->check(CLI::IsMember({"keep", "fp16", "bf16", "fp32"}))
      ->capture_default_str();
}

std::optional<DType> precisionOf(const std::string &name) {
  if (name == "fp16")
    return DType::F16;
  if (name == "bf16")
    return DType::BF16;
  return name == "fp32" ? std::optional(DType::F32) : std::nullopt;
}

Status withDiagnostics(Status status, const ir::Diagnostics &diagnostics) {
  if (status.isOk() || !diagnostics.hasErrors())
    return status;
  return diagnostics.toStatus(status.code());
}

} // namespace cgc::tool
