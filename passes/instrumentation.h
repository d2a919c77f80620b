// Instrumentation: what happens around passes (printing, dumping, timing, checking). Passes know
// nothing of it.
#pragma once

#include "passes/pass.h"

#include "llvm/Support/raw_ostream.h"

#include <functional>
#include <string>
#include <vector>

namespace cgc::passes {

struct RegisteredPass;

/// One run of one pass: on a module, or on a graph; the other pointer is null. Borrowed.
struct PassRun {
  std::string_view pass;
  unsigned position = 0; ///< In the pipeline, from 1.
  const ir::Module *module = nullptr;
  const ir::Graph *graph = nullptr;
};

/// The IR that `run` is about, as text.
std::string toString(const PassRun &run);

/// Any of them may be empty.
struct PassCallbacks {
  std::function<void(const PassRun &)> before;
  /// An error ends the pipeline.
  std::function<Status(const PassRun &, Changed)> after;
  /// Once, when the last pass has run.
  std::function<void()> finish;
};

class Instrumentation final {
public:
  void add(PassCallbacks callbacks) { callbacks_.push_back(std::move(callbacks)); }

  /// In the order of add().
  void before(const PassRun &run) const;
  /// In the opposite order, so that what was added last is nearest to the pass. Stops at an error.
  Status after(const PassRun &run, Changed changed) const;
  void finish() const;

private:
  std::vector<PassCallbacks> callbacks_;
};

struct InstrumentationOptions {
  bool printAfterAll = false;
  std::vector<std::string> printAfter = {}; ///< Names of passes.
  /// `NN-pass.graph.cgir` and `.dot` after each pass, NN being its position; the folder is made if
  /// it is missing. Empty: nothing is written.
  std::string dumpDir = {};
  bool timePasses = false; ///< A table at finish().
  bool verifyEach = true;  ///< In Debug builds text is also parsed back and compared.
};

/// The standard callbacks that `options` ask for; they write to `log`, which must outlive them.
/// Usage if `printAfter` names no pass; `more` are passes beside those of passes.def.
Result<Instrumentation> makeInstrumentation(const InstrumentationOptions &options,
                                            llvm::raw_ostream &log,
                                            llvm::ArrayRef<RegisteredPass> more = {});

} // namespace cgc::passes
