// PassList: a pipeline as a value, and its text form.
#pragma once

#include "passes/manager/pass_options.h"

namespace cgc::passes {

/// A pass of a pipeline. The pass and its options need not exist: PassManager::create() looks.
struct PassEntry {
  std::string pass;
  std::vector<PassOption> options = {};
};
using PassList = std::vector<PassEntry>;

/// Parses comma-separated names, each optionally followed by its options in braces:
/// `inline,specialize,precision{to=f16},fold{limit=1024}`. An empty text has no passes. Usage if
/// the text is malformed or an option is given twice.
Result<PassList> parsePassList(llvm::StringRef text);

/// The inverse of parsePassList().
std::string toString(llvm::ArrayRef<PassEntry> passes);

} // namespace cgc::passes
