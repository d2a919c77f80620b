// TokenReader: the base of the IR parser: one token of lookahead, errors with positions, and
// recovery at the next line. Private to the parser.
#pragma once

#include "ir/diagnostics.h"
#include "ir/text/lexer.h"

namespace cgc::ir {

/// Functions that return bool report their errors themselves.
class TokenReader {
protected:
  /// Borrows all three.
  TokenReader(llvm::StringRef text, llvm::StringRef fileName, Diagnostics &diagnostics);

  void advance();
  bool atPunct(char c) const { return token_.kind == TokenKind::Punct && token_.punct == c; }
  bool atName(llvm::StringRef name) const {
    return token_.kind == TokenKind::Name && token_.text == name;
  }
  bool consume(char c);
  bool expect(char c);
  /// Consumes a token of this kind into `token`.
  bool expect(TokenKind kind, llvm::StringRef what, Token &token);
  /// Always returns false, as fail() does.
  bool failExpected(llvm::StringRef what);
  bool fail(const Token &at, std::string message);
  /// Stops: no further tokens and no further errors.
  void giveUp();
  /// Fills in the file, line, column and source line for an error at `position`, and makes the
  /// message safe for a terminal.
  void place(const char *position, Diagnostic &diagnostic) const;

  /// After a statement: expects the end of the line.
  bool expectLineEnd();
  void skipLine();
  /// After a header that failed: skips its line. Returns true if a body follows.
  bool skipToBody();
  /// Parses one statement. On failure, skips to the next line.
  template <class Fn> void recover(Fn parseStatement) {
    const char *start = token_.begin;
    if (parseStatement() && expectLineEnd())
      return;
    if (token_.begin == start)
      advance();
    skipLine();
  }

  Lexer lexer_;
  Token token_;                   ///< The lookahead token.
  const char *lastEnd_ = nullptr; ///< The end of the last consumed token.
  unsigned numErrors_ = 0;

private:
  void reportAt(const char *position, std::string message);

  llvm::StringRef text_, fileName_;
  Diagnostics &diagnostics_;
  bool gaveUp_ = false;
};

} // namespace cgc::ir
