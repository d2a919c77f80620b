// Instrumentation: callbacks around passes (printing, dumping, timing, checking). Passes are
// unaware of it.
#pragma once

#include "passes/pass.h"
#include "runtime/base/dtype.h"

#include "llvm/Support/raw_ostream.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace cgc::passes {

class PassManager;
struct RegisteredPass;

/// One run of one pass, on a module or on a graph; the other pointer is null. Borrowed.
struct PassRun {
  std::string_view pass;
  unsigned position = 0; ///< Position in the pipeline of `manager`, from 1.
  bool isRequired = false;
  const PassManager *manager = nullptr;
  const ir::Module *module = nullptr;
  const ir::Graph *graph = nullptr;
};

/// Returns the IR of `run` as text.
std::string toString(const PassRun &run);
/// Returns text that can be parsed and run on its own: a graph that reads parameters is wrapped in
/// a module that declares them.
std::string standaloneText(const PassRun &run);

/// Any of them may be empty.
struct PassCallbacks {
  /// Returns false to skip the pass and its other callbacks. The first callback that returns false
  /// decides.
  std::function<bool(const PassRun &)> shouldRun = {};
  std::function<void(const PassRun &)> before = {};
  /// Runs after the pass. An error ends the pipeline.
  std::function<Status(const PassRun &, Changed)> after = {};
  /// Runs when the pass, or a callback after it, has failed with this status.
  std::function<void(const PassRun &, const Status &)> failed = {};
  /// Runs once, after the last pass or after a failure.
  std::function<void()> finish = {};
};

class Instrumentation final {
public:
  void add(PassCallbacks callbacks) { callbacks_.push_back(std::move(callbacks)); }
  /// Sends the match failures of `pass` to `listener`.
  void explain(std::string pass, MatchListener listener) {
    explained_ = std::move(pass);
    listener_ = std::move(listener);
  }

  /// The pass given to explain(); empty without one.
  const std::string &explained() const { return explained_; }
  /// Returns who receives the match failures of `pass`; null if nobody does.
  const MatchListener *listenerTo(llvm::StringRef pass) const {
    return !explained_.empty() && pass == explained_ ? &listener_ : nullptr;
  }

  bool shouldRun(const PassRun &run) const;
  /// Runs the callbacks in the order of add().
  void before(const PassRun &run) const;
  /// Runs the callbacks in reverse order, so that the callback added last is the innermost. Stops
  /// at an error.
  Status after(const PassRun &run, Changed changed) const;
  void failed(const PassRun &run, const Status &status) const;
  void finish() const;

private:
  std::vector<PassCallbacks> callbacks_;
  std::string explained_;
  MatchListener listener_;
};

/// A plug-in loaded for a run, for the run's reproducer.
struct UsedPlugin {
  std::string path;
  uint64_t hash = 0; ///< xxhash64 of the file.
};

/// The environment of a pipeline run, which its reproducer records.
struct RunOrigin {
  DeviceKind target = DeviceKind::Cpu;
  std::string producer = {}; ///< Versions of cgc and of the libraries it was built with.
  std::vector<UsedPlugin> plugins = {};
};

struct InstrumentationOptions {
  bool printAfterAll = false;
  std::vector<std::string> printAfter = {}; ///< Names of passes.
  /// Folder for `NN-pass.graph.cgir` and `.dot` after each pass, where NN is its position. Created
  /// if missing. Empty: writes nothing.
  std::string dumpDir = {};
  bool printChanged = false; ///< Prints the lines that each pass changed.
  /// Skips passes that are not required once this many passes have run, and logs each run.
  std::optional<unsigned> passLimit = {};
  bool timePasses = false; ///< Prints a table at finish().
  /// Name of a pass whose candidates that do not match are reported; empty: none.
  std::string explain = {};
  /// Receives them; empty: they are printed, with their number at finish().
  MatchListener matchFailed = {};
  /// File for the input of a failing pass (reproducer.h); empty: none.
  std::string crashReproducer = {};
  RunOrigin origin = {};  ///< For the reproducer.
  bool verifyEach = true; ///< Debug builds also check that the text round-trips.
};

/// Returns the standard callbacks that `options` ask for. They write to `log`, which must outlive
/// them. Usage if `printAfter`, `explain` or `crashReproducer` is invalid. `more` lists passes in
/// addition to passes.def.
Result<Instrumentation> makeInstrumentation(const InstrumentationOptions &options,
                                            llvm::raw_ostream &log,
                                            llvm::ArrayRef<RegisteredPass> more = {});

} // namespace cgc::passes
