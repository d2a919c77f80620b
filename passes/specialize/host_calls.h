// HostCallsPass: leaves calls of chosen submodules to the host program.
#pragma once

#include "passes/pass.h"

namespace cgc::passes {

/// Replaces each call of a module whose path matches the option `module`, a glob, by cgc.host_call.
/// Arguments at the end that are constants and equal their defaults are left out. Runs before
/// `inline`. Usage, with the nearest path, if no call matches.
struct HostCallsPass {
  static constexpr const char *name = "host-calls";
  static constexpr bool isRequired = true;
  static Result<HostCallsPass> create(PassOptions &options);
  Result<Changed> run(ir::Module &module, PassContext &context) const;

  std::string glob;
};

} // namespace cgc::passes
