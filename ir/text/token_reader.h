// TokenReader: what any parser of IR text needs: one token of look-ahead, errors with positions,
// and recovery at the next line. Private to the parser.
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
  /// Takes a token of this kind into `token`.
  bool expect(TokenKind kind, llvm::StringRef what, Token &token);
  /// Always false, as fail().
  bool failExpected(llvm::StringRef what);
  bool fail(const Token &at, std::string message);
  /// No more tokens and no more errors.
  void giveUp();
  /// Fills in file, line, column and the line's text of what is wrong at `position`, and makes the
  /// message one that a terminal can show.
  void place(const char *position, Diagnostic &diagnostic) const;

  /// After a statement: nothing else may stand on its line.
  bool expectLineEnd();
  void skipLine();
  /// After a header that failed: skips its line; true if a body follows.
  bool skipToBody();
  /// Parses one statement and, if that fails, skips to the next line.
  template <class Fn> void recover(Fn parseStatement) {
    const char *start = token_.begin;
    if (parseStatement() && expectLineEnd())
      return;
    if (token_.begin == start)
      advance();
    skipLine();
  }

  Lexer lexer_;
  Token token_;                   ///< The next one, not yet taken.
  const char *lastEnd_ = nullptr; ///< The end of the last one taken.
  unsigned numErrors_ = 0;

private:
  void reportAt(const char *position, std::string message);

  llvm::StringRef text_, fileName_;
  Diagnostics &diagnostics_;
  bool gaveUp_ = false;
};

} // namespace cgc::ir
