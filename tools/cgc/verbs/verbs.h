// Verbs of cgc: each function of verbs.def adds a subcommand and returns how to run it.
#pragma once

#include "runtime/base/status.h"

#include <nlohmann/json_fwd.hpp>

#include <functional>

namespace CLI {
class App;
}

namespace cgc::tool {

struct Verb {
  CLI::App *command = nullptr;
  /// Runs the verb. Prints results to stdout, log and progress to stderr.
  std::function<Status()> run;
  /// Whether a failure is also reported on stdout, because the user asked for JSON. Called after
  /// run.
  std::function<bool()> wantsJson = [] { return false; };
  /// The fields of a failure's JSON object besides code and message; may be empty. Called after
  /// run.
  std::function<nlohmann::ordered_json()> failureFields = nullptr;
};

#define CGC_VERB(function) Verb function(CLI::App &app);
#include "tools/cgc/verbs/verbs.def"

} // namespace cgc::tool
