// Substitutions: user registrations for the pipeline's two extension points. Both are empty by
// default, so the model runs as it was traced.
#pragma once

#include "ir/module.h"
#include "ir/rewriter.h"
#include "runtime/base/status.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace cgc::passes {

/// Replaces the body of a module or each call of it; exactly one of the two functions is set. A
/// module matches if its class name equals `className` (empty: any), its path matches `pathGlob`
/// (empty: any; `*` matches within one path component, `**` across), and it has each of
/// `attributes` with an equal value. All matches are found before the first is replaced: modules
/// added by a replacement are matched only by substitutions registered later. The replacement must
/// return values of the same types as the original; `specialize` refuses it otherwise and names
/// both types. `specialize` also refuses it if the original overwrites a tensor that is read later.
struct ModuleSubstitution {
  std::string name; ///< For messages.
  std::string className;
  std::string pathGlob;
  std::vector<ir::Attribute> attributes;
  /// Changes the graphs of a matched module in place; may read its parameters and attributes. Must
  /// keep each graph's numbers of inputs and outputs.
  std::function<Status(ir::Module &module)> replaceBody;
  /// Adds nodes before `call`, a call of a method of `module`, and returns a value for each of its
  /// results. `call` stays in the graph, without users.
  std::function<Result<std::vector<ir::Value *>>(ir::Node &call, ir::Module &module)> replaceCall;
};

/// One match of a pattern.
struct OpMatch {
  ir::Node &root; ///< The node that computes the pattern's output.
  /// The value or constant bound to each input of the pattern.
  std::vector<std::pair<std::string, ir::Arg>> inputs;

  /// Returns the argument bound to the input `name`, which must exist.
  const ir::Arg &operator[](llvm::StringRef name) const;
};

/// Replaces a small group of nodes wherever it matches. `pattern` is the IR text of one graph:
/// - an input matches any argument, constants included; an input with a type matches only values of
///   this dtype and these sizes; an input that is used twice matches one and the same argument;
/// - a call matches a call of the same op with these arguments, whose result, if the pattern states
///   its type, has this dtype and these sizes;
/// - there is one output, and every call leads to it.
struct OpSubstitution {
  std::string name; ///< For messages.
  std::string pattern;
  /// The IR text of one graph with one output, whose inputs are some of the pattern's, matched by
  /// name. Types are computed, so they may be `dynamic`.
  std::string replacement;
  /// Alternative to `replacement`: creates nodes before match.root with GraphRewriter::tryCreate
  /// and returns the value that replaces its result. Returns null, with the graph unchanged, to
  /// decline the match. Must not erase nodes.
  std::function<Result<ir::Value *>(const OpMatch &match, ir::GraphRewriter &rewriter)> replace;
};

struct Substitutions {
  std::vector<ModuleSubstitution> modules;
  std::vector<OpSubstitution> ops;
};

} // namespace cgc::passes
