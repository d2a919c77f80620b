// bench_load: the options of `cgc bench` that put a load on a session, and its report.
#pragma once

#include "runtime/exec/engine.h"
#include "tools/cgc/load/request_mix.h"

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace cgc::tool {

/// The options of a load. Any but `threads` asks for one.
struct LoadChoice {
  int contexts = 1, devices = 1;
  std::vector<MixPart> mix;
  double rate = 0, seconds = 10;
  std::string tensors = "host";
  std::string swapPlan;
  double swapEvery = 1;
  std::vector<const CLI::Option *> options; ///< Those that ask for a load.

  /// Whether the command line asks for a load.
  bool isAsked() const;
};

/// The options of `cgc bench` that a load shares with its other measurements.
struct LoadSetting {
  std::string plan, executor;
  BucketChoice buckets;
  int threads = 0; ///< Client threads; 0: one.
  std::vector<std::string> opLibraries;
  std::string hostModules; ///< The value of --host-modules.
  bool json = false;
};

/// Adds the options of a load; none may be given together with one of `others`. `choice` must
/// outlive `command`.
void addLoadOptions(CLI::App &command, LoadChoice &choice,
                    const std::vector<CLI::Option *> &others);

/// Serves the plan by a session, puts the load on it and prints the figures.
Status benchLoad(const LoadSetting &setting, const LoadChoice &choice);

} // namespace cgc::tool
