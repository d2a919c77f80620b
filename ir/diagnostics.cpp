// Diagnostics: collects and renders errors.
#include "ir/diagnostics.h"

#include "ir/fallback.h"
#include "ir/text/text.h"
#include "runtime/base/printable.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::ir {
namespace {

/// Returns `clip.cgir:3:12: ` for IR text, `transformer.py:918: ` for the model's source, or an
/// empty string.
std::string position(const Diagnostic &error) {
  if (error.line != 0)
    return error.fileName + ":" + std::to_string(error.line) + ":" + std::to_string(error.column) +
           ": ";
  Loc source = error.loc;
  source.module.clear();
  return source.file.empty() ? "" : toString(source) + ": ";
}

/// Returns the line of IR text and a caret under the column. Tabs are kept so that the caret
/// aligns.
std::string lineWithCaret(const Diagnostic &error) {
  std::string blanks;
  for (char c : llvm::StringRef(error.lineText).take_front(error.column - 1))
    blanks += c == '\t' ? '\t' : ' ';
  return "  " + error.lineText + "\n  " + blanks + "^\n";
}

/// `text`, parts of which may come from the model's file, with escapes for what would change what a
/// terminal shows, line by line.
std::string shown(llvm::StringRef text) {
  constexpr size_t kMostBytes = 10000;
  std::string lines;
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, '\n');
  for (const auto &[i, line] : llvm::enumerate(parts))
    lines += (i ? "\n" : "") + printable(std::string_view(line.data(), line.size()), kMostBytes);
  return lines;
}

} // namespace

void Diagnostics::error(Diagnostic diagnostic) {
  bool known = !diagnostic.loc.file.empty() && llvm::any_of(errors_, [&](const Diagnostic &other) {
    return other.message == diagnostic.message && other.loc.file == diagnostic.loc.file &&
           other.loc.line == diagnostic.loc.line && other.line == diagnostic.line;
  });
  if (!known)
    errors_.push_back(std::move(diagnostic));
}

void Diagnostics::error(const Node &node, std::string message, Cause cause) {
  Diagnostic diagnostic;
  diagnostic.message = std::move(message);
  diagnostic.loc = node.loc();
  diagnostic.subject = toString(node);
  diagnostic.cause = cause;
  if (node.kind() == NodeKind::CallFunction)
    diagnostic.op = node.is(OpKind::Fallback)
                        ? fallbackName(node).full.str()
                        : opName(node.op()).str() + (node.isInPlace() ? "_" : "");
  errorAt(&node, std::move(diagnostic));
}

void Diagnostics::error(const Graph &graph, std::string message) {
  Diagnostic diagnostic;
  diagnostic.message = std::move(message);
  diagnostic.subject = "graph @" + graph.name();
  errorAt(&graph, std::move(diagnostic));
}

void Diagnostics::errorAt(const void *object, Diagnostic diagnostic) {
  if (locator_)
    locator_(object, diagnostic);
  if (!diagnostic.lineText.empty())
    diagnostic.subject.clear();
  error(std::move(diagnostic));
}

std::string Diagnostics::render(size_t first) const {
  std::string text;
  for (const Diagnostic &error : llvm::ArrayRef(errors_).drop_front(first)) {
    text += shown(position(error) + "error: " + error.message) + "\n";
    if (error.cause != Cause::None)
      text += "  to do: " + textOf(error.cause).fix.str() + "\n";
    if (!error.lineText.empty())
      text += lineWithCaret(error);
    if (!error.subject.empty())
      text += "  " + shown(error.subject) + "\n";
    if (!error.loc.module.empty())
      text += "  in module '" + shown(error.loc.module) + "'\n";
  }
  return text;
}

Status Diagnostics::toStatus(Code code) const {
  return hasErrors() ? Status(code, render()) : Status::ok();
}

} // namespace cgc::ir
