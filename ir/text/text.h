// The text form of modules and graphs: printer and parser. docs/ir.md has the grammar.
// parse(print(m)) == m except for parameter bytes, which the text does not hold.
#pragma once

#include "ir/diagnostics.h"
#include "ir/module.h"
#include "ir/schema.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <memory>
#include <string>

namespace cgc::ir {

struct PrintOptions {
  bool locations = true;
};

void print(llvm::raw_ostream &os, const Module &module, PrintOptions options = {});
void print(llvm::raw_ostream &os, const Graph &graph, PrintOptions options = {});
std::string toString(const Module &module, PrintOptions options = {});
std::string toString(const Graph &graph, PrintOptions options = {});
/// Prints one node without its location and line break, for messages.
std::string toString(const Node &node);
/// Prints one argument: `%x`, `[1, 2]`, `0.5`. Not named `toString`, since too many types convert
/// to Arg.
std::string argText(const Arg &arg);

/// Returns true if calls write this argument in the parentheses rather than as `name=value` in the
/// braces.
bool isPositional(const SchemaArg &arg);

/// Parses a file that holds one module. On failure returns null, and `diagnostics` holds every
/// error with its line, column and caret. Graphs without a module are put into a module named
/// "root".
std::unique_ptr<Module> parseModule(llvm::StringRef text, llvm::StringRef fileName,
                                    Diagnostics &diagnostics);
/// Like parseModule, then verifies. Errors of the verifier have a line, a column and a caret too.
std::unique_ptr<Module> parseAndVerify(llvm::StringRef text, llvm::StringRef fileName,
                                       Diagnostics &diagnostics);

/// Checks that the text of `module`, parsed, prints as the same text. Failed, which means a bug in
/// the printer or the parser, with the first line that differs or the parser's errors.
Status checkRoundTrip(const Module &module);

} // namespace cgc::ir
