// Diagnostics: errors in a user's model or IR file, collected and reported together.
#pragma once

#include "ir/graph.h"
#include "ir/offenders.h"
#include "runtime/base/status.h"

#include <functional>
#include <string>
#include <vector>

namespace cgc::ir {

struct Diagnostic {
  std::string message;       ///< One sentence that states the error, one that states the fix.
  Loc loc;                   ///< Location in the model's source, if known.
  std::string subject;       ///< The IR line or the op that the error concerns; may be empty.
  Cause cause = Cause::None; ///< Why the op cannot be captured.
  std::string op;            ///< The op that cannot be captured, as the model's author knows it.
  /// For errors in IR text: the position and the source line, for a caret.
  std::string fileName;
  unsigned line = 0, column = 0;
  std::string lineText;
};

class Diagnostics {
public:
  /// Adds an error. Keeps one copy of a message at the same line of the model's source, since
  /// several modules may share a line, and several methods a module.
  void error(Diagnostic diagnostic);
  /// Adds an error at a node, with its location, text and op.
  void error(const Node &node, std::string message, Cause cause = Cause::None);
  /// Adds an error about a whole graph.
  void error(const Graph &graph, std::string message);
  bool hasErrors() const { return !errors_.empty(); }
  llvm::ArrayRef<Diagnostic> errors() const { return errors_; }

  /// Renders all errors from index `first` on, one block each: `file:line: error: message`, the fix
  /// if the cause is known, the subject or the source line with a caret, and the module path.
  std::string render(size_t first = 0) const;
  /// Returns Ok if there are no errors, otherwise `code` with render() as its message.
  Status toStatus(Code code) const;

  /// Fills in the file, position and line at which IR text defines a node or a graph.
  using Locator = std::function<void(const void *nodeOrGraph, Diagnostic &)>;
  /// Sets the function that locates later errors at a node or a graph. An empty function disables
  /// it.
  void setLocator(Locator locator) { locator_ = std::move(locator); }

private:
  /// Adds an error and its IR-text position, if known. With a source line to show, drops the
  /// subject.
  void errorAt(const void *object, Diagnostic diagnostic);

  std::vector<Diagnostic> errors_;
  Locator locator_;
};

} // namespace cgc::ir
