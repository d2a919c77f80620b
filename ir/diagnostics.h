// Diagnostics: everything that is wrong with a user's model or IR file, collected, then shown at
// once.
#pragma once

#include "ir/graph.h"
#include "ir/offenders.h"
#include "runtime/base/status.h"

#include <functional>
#include <string>
#include <vector>

namespace cgc::ir {

struct Diagnostic {
  std::string message;       ///< What is wrong and what to do, one sentence each.
  Loc loc;                   ///< In the model's source, if known.
  std::string subject;       ///< The IR line or the op it is about; may be empty.
  Cause cause = Cause::None; ///< Why it cannot be captured.
  std::string op;            ///< The op that cannot, as the model's author knows it.
  /// For errors in IR text: position and the line itself, for a caret.
  std::string fileName;
  unsigned line = 0, column = 0;
  std::string lineText;
};

class Diagnostics {
public:
  /// The same message at the same line of the model's source is kept once: many modules share a
  /// line, and several methods a module.
  void error(Diagnostic diagnostic);
  /// An error at a node: takes its location, text and op.
  void error(const Node &node, std::string message, Cause cause = Cause::None);
  /// An error at a whole graph.
  void error(const Graph &graph, std::string message);
  bool hasErrors() const { return !errors_.empty(); }
  llvm::ArrayRef<Diagnostic> errors() const { return errors_; }

  /// All errors, one block each: `file:line: error: message`, what to do if the cause is known, the
  /// subject or the line with a caret, and the module path. Errors before `first` are left out.
  std::string render(size_t first = 0) const;
  /// Ok if there are no errors, else `code` with render() as its message.
  Status toStatus(Code code) const;

  /// Says where in a file of IR text a node or a graph stands: fills in the position and the line.
  using Locator = std::function<void(const void *nodeOrGraph, Diagnostic &)>;
  /// Asked for each error at a node or a graph from now on; empty: nobody is.
  void setLocator(Locator locator) { locator_ = std::move(locator); }

private:
  /// Adds an error that a locator may place; a line that is shown needs no text of the object.
  void errorAt(const void *object, Diagnostic diagnostic);

  std::vector<Diagnostic> errors_;
  Locator locator_;
};

} // namespace cgc::ir
