// Substitutions: what a user registers at the pipeline's two extension points. Both are empty by
// default: what was traced is what runs.
#pragma once

#include "ir/module.h"
#include "ir/rewriter.h"
#include "runtime/base/status.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace cgc::passes {

/// Replaces what a module computes: its body or each call of it, of which one function is given. A
/// module matches if its class name equals `className` (empty: any), its path matches `pathGlob`
/// (empty: any; `*` matches within one path component, `**` across), and each of `attributes` is
/// present with an equal value. All matches are found before the first is replaced: modules that a
/// replacement adds are not matched again by the same substitution, but by those registered later.
/// What replaces has to give what the original gives, of the same
/// types: `specialize` refuses it otherwise and names both. It refuses too where the original
/// overwrites a tensor that is read later.
struct ModuleSubstitution {
  std::string name; ///< For messages.
  std::string className;
  std::string pathGlob;
  std::vector<ir::Attribute> attributes;
  /// Changes the graphs of a matched module in place; sees its parameters and attributes. A graph
  /// keeps its numbers of inputs and outputs.
  std::function<Status(ir::Module &module)> replaceBody;
  /// Adds nodes ahead of `call`, a call of a method of `module`, and returns a value for each of
  /// its results. `call` stays, but nobody reads it any more.
  std::function<Result<std::vector<ir::Value *>>(ir::Node &call, ir::Module &module)> replaceCall;
};

/// Where a pattern fits.
struct OpMatch {
  ir::Node &root; ///< What computes the pattern's output.
  /// What each input of the pattern stands for: a value, or a constant.
  std::vector<std::pair<std::string, ir::Arg>> inputs;

  /// That of the input called `name`, which must exist.
  const ir::Arg &operator[](llvm::StringRef name) const;
};

/// Replaces a small group of nodes wherever it fits. `pattern` is the IR text of one graph:
///  - an input stands for any argument, constants included; one with a type only for values of this
///    dtype and these sizes; one that is used twice for one and the same argument;
///  - a call stands for a call of the same op with these arguments, whose result, if the pattern
///    states its type, has this dtype and these sizes;
///  - there is one output, and every call leads to it.
struct OpSubstitution {
  std::string name; ///< For messages.
  std::string pattern;
  /// The IR text of one graph with one output, whose inputs are some of the pattern's, by name.
  /// Types are computed, so `dynamic` will do.
  std::string replacement;
  /// In place of `replacement`: makes nodes ahead of match.root by GraphRewriter::tryCreate and
  /// returns the value that replaces its result; null leaves the match as it is, and nothing may
  /// have been changed then. It erases nothing.
  std::function<Result<ir::Value *>(const OpMatch &match, ir::GraphRewriter &rewriter)> replace;
};

struct Substitutions {
  std::vector<ModuleSubstitution> modules;
  std::vector<OpSubstitution> ops;
};

} // namespace cgc::passes
