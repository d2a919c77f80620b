// TokenReader: lookahead, expectations, errors and recovery.
#include "ir/text/token_reader.h"

#include "runtime/base/printable.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

namespace cgc::ir {
namespace {

constexpr unsigned kMaxErrors = 100;
/// Errors show no line longer than this: it is hardly IR text.
constexpr size_t kMaxShownLine = 1000;
constexpr size_t kMaxMessage = 500;

/// Returns a line of the file in a form that is safe for a terminal, byte for byte, since a mark
/// under it shows the column: '?' replaces control characters other than the tab, and non-ASCII
/// bytes unless the whole text is UTF-8.
std::string printableLine(llvm::StringRef text) {
  const bool isUtf8 = llvm::json::isUTF8(text);
  std::string shown = text.str();
  for (char &c : shown)
    if (!llvm::isPrint(c) && c != '\t' && !(isUtf8 && static_cast<unsigned char>(c) >= 0x80))
      c = '?';
  return shown;
}

} // namespace

TokenReader::TokenReader(llvm::StringRef text, llvm::StringRef fileName, Diagnostics &diagnostics)
    : lexer_(text), text_(text), fileName_(fileName), diagnostics_(diagnostics) {
  advance();
}

void TokenReader::advance() {
  if (gaveUp_)
    return;
  lastEnd_ = token_.end;
  token_ = lexer_.next();
}

bool TokenReader::consume(char c) {
  if (!atPunct(c))
    return false;
  advance();
  return true;
}

bool TokenReader::expect(char c) {
  return consume(c) || failExpected(std::string("'") + c + "'");
}

bool TokenReader::expect(TokenKind kind, llvm::StringRef what, Token &token) {
  if (token_.kind != kind)
    return failExpected(what);
  token = token_;
  advance();
  return true;
}

bool TokenReader::failExpected(llvm::StringRef what) {
  // Reports at the end of the incomplete line rather than on the next one.
  if (token_.startsLine && lastEnd_ && token_.kind != TokenKind::Invalid) {
    reportAt(lastEnd_, "expected " + what.str() + " before the end of the line");
    return false;
  }
  return fail(token_, "expected " + what.str());
}

bool TokenReader::fail(const Token &at, std::string message) {
  reportAt(at.begin, at.kind == TokenKind::Invalid ? at.text : std::move(message));
  return false;
}

void TokenReader::place(const char *position, Diagnostic &diagnostic) const {
  llvm::StringRef before(text_.begin(), position - text_.begin());
  llvm::StringRef line = text_.drop_front(before.rfind('\n') + 1).split('\n').first.rtrim('\r');
  diagnostic.fileName = fileName_.str();
  diagnostic.line = static_cast<unsigned>(before.count('\n')) + 1;
  diagnostic.column = static_cast<unsigned>(position - line.begin()) + 1;
  if (line.size() <= kMaxShownLine)
    diagnostic.lineText = printableLine(line);
  // The message may quote a name of the file, of any length.
  diagnostic.message = printable(diagnostic.message, kMaxMessage);
}

void TokenReader::reportAt(const char *position, std::string message) {
  if (gaveUp_)
    return;
  Diagnostic error;
  error.message = std::move(message);
  place(position, error);
  diagnostics_.error(std::move(error));
  if (++numErrors_ == kMaxErrors)
    giveUp();
}

void TokenReader::giveUp() {
  gaveUp_ = true;
  token_ = Token{.kind = TokenKind::End, .begin = text_.end(), .end = text_.end(), .text = ""};
}

bool TokenReader::expectLineEnd() {
  return token_.startsLine || token_.kind == TokenKind::End || atPunct('}') ||
         failExpected("the end of the line");
}

void TokenReader::skipLine() {
  while (token_.kind != TokenKind::End && !token_.startsLine)
    advance();
}

bool TokenReader::skipToBody() {
  bool opens = false;
  while (token_.kind != TokenKind::End && !token_.startsLine) {
    opens = atPunct('{');
    advance();
  }
  return opens;
}

} // namespace cgc::ir
