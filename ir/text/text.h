// The text form of modules and graphs: printer and parser. The grammar is docs/ir.md;
// parse(print(m)) == m but for parameter bytes, which text does not hold.
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
/// One node, without its location and a line break; for messages.
std::string toString(const Node &node);
/// One argument: `%x`, `[1, 2]`, `0.5`. (Not `toString`: too much converts to Arg.)
std::string argText(const Arg &arg);

/// Whether calls write this argument in the parentheses, not as `name=value` in the braces.
bool standsInParentheses(const SchemaArg &arg);

/// Parses a file that holds one module. On failure returns null and `diagnostics` holds every error
/// with its line and column (and prints a caret under it). A file of graphs alone is put into a
/// module "root".
std::unique_ptr<Module> parseModule(llvm::StringRef text, llvm::StringRef fileName,
                                    Diagnostics &diagnostics);
/// The same, then verifies: what the verifier finds has its line, its column and a caret too.
std::unique_ptr<Module> parseAndVerify(llvm::StringRef text, llvm::StringRef fileName,
                                       Diagnostics &diagnostics);

/// Whether the text of `module`, parsed, prints as the same text. Failed with the first line that
/// does not come back, or with what the parser says: a bug of the printer or of the parser.
Status checkRoundTrip(const Module &module);

} // namespace cgc::ir
