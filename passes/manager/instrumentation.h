// Instrumentation: what happens around passes (printing, dumping, timing, checking). Passes know
// nothing of it.
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

/// One run of one pass: on a module, or on a graph; the other pointer is null. Borrowed.
struct PassRun {
  std::string_view pass;
  unsigned position = 0; ///< In the pipeline of `manager`, from 1.
  bool isRequired = false;
  const PassManager *manager = nullptr;
  const ir::Module *module = nullptr;
  const ir::Graph *graph = nullptr;
};

/// The IR that `run` is about, as text.
std::string toString(const PassRun &run);
/// The same such that it can be parsed and run on its own: a graph that reads parameters comes in a
/// module that declares them.
std::string standaloneText(const PassRun &run);

/// Any of them may be empty.
struct PassCallbacks {
  /// False leaves the pass out, without any other callback for it. The first that says so decides.
  std::function<bool(const PassRun &)> shouldRun = {};
  std::function<void(const PassRun &)> before = {};
  /// An error ends the pipeline.
  std::function<Status(const PassRun &, Changed)> after = {};
  /// The pass, or a callback after it, has failed with this status.
  std::function<void(const PassRun &, const Status &)> failed = {};
  /// Once, when the last pass has run, or one has failed.
  std::function<void()> finish = {};
};

class Instrumentation final {
public:
  void add(PassCallbacks callbacks) { callbacks_.push_back(std::move(callbacks)); }

  bool shouldRun(const PassRun &run) const;
  /// In the order of add().
  void before(const PassRun &run) const;
  /// In the opposite order, so that what was added last is nearest to the pass. Stops at an error.
  Status after(const PassRun &run, Changed changed) const;
  void failed(const PassRun &run, const Status &status) const;
  void finish() const;

private:
  std::vector<PassCallbacks> callbacks_;
};

/// A plug-in that took part in a run, for its reproducer.
struct UsedPlugin {
  std::string path;
  uint64_t hash = 0; ///< xxhash64 of its bytes.
};

/// What a pipeline ran in; a reproducer records it.
struct RunOrigin {
  DeviceKind target = DeviceKind::Cpu;
  std::string producer = {}; ///< Versions of cgc and of what it was built with.
  std::vector<UsedPlugin> plugins = {};
};

struct InstrumentationOptions {
  bool printAfterAll = false;
  std::vector<std::string> printAfter = {}; ///< Names of passes.
  /// `NN-pass.graph.cgir` and `.dot` after each pass, NN being its position; the folder is made if
  /// it is missing. Empty: nothing is written.
  std::string dumpDir = {};
  bool printChanged = false; ///< After each pass the lines that it changed.
  /// Runs that are numbered higher are left out, but for those of required passes; each is named.
  std::optional<unsigned> passLimit = {};
  bool timePasses = false; ///< A table at finish().
  /// Where to keep what a failing pass ran on (reproducer.h); empty: nowhere.
  std::string crashReproducer = {};
  RunOrigin origin = {};  ///< For the reproducer.
  bool verifyEach = true; ///< In Debug builds text is also parsed back and compared.
};

/// The standard callbacks that `options` ask for; they write to `log`, which must outlive them.
/// Usage if `printAfter` or `crashReproducer` will not do; `more`: passes that passes.def has not.
Result<Instrumentation> makeInstrumentation(const InstrumentationOptions &options,
                                            llvm::raw_ostream &log,
                                            llvm::ArrayRef<RegisteredPass> more = {});

} // namespace cgc::passes
