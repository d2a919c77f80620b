// Lexer: splits IR text into tokens with positions. docs/ir.md has the grammar. Private to the
// parser.
#pragma once

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace cgc::ir {

enum class TokenKind : uint8_t {
  End,
  Invalid, ///< `text` is the error message.
  Name,    ///< `graph`, `aten.relu_`, `f16`, `none`; spelling in `text`.
  Value,   ///< `%x`; `text` is the name, unescaped.
  Symbol,  ///< `@a.b`; `text` is the name, unescaped.
  String,  ///< `text` is the content, unescaped.
  Int,
  Float,
  Arrow, ///< `->`
  Punct, ///< One of ( ) [ ] { } , : =
};

struct Token {
  TokenKind kind = TokenKind::End;
  const char *begin = nullptr; ///< First character of the token in the buffer.
  const char *end = nullptr;
  std::string text;
  int64_t intValue = 0;
  double floatValue = 0;
  char punct = 0;
  bool startsLine = false; ///< Only blanks precede it on its line.
};

class Lexer {
public:
  /// Borrows `text`.
  explicit Lexer(llvm::StringRef text) : cursor_(text.begin()), end_(text.end()) {}

  /// Returns the next token; End repeatedly at the end of the text.
  Token next();

private:
  void lexToken(Token &token);
  void lexNumber(Token &token);
  /// Lexes a quoted string, with the cursor at the quote. Fills `token.text` or makes the token
  /// Invalid.
  void lexString(Token &token);
  void lexSigil(Token &token, TokenKind kind);

  const char *cursor_;
  const char *end_;
  bool lexedAny_ = false;
};

/// Returns `text` quoted and escaped for the lexer.
std::string quoted(llvm::StringRef text);
/// Returns true if `%text` and `@text` need no quotes.
bool isBareName(llvm::StringRef text);
/// Returns true if `text` is a single Name token.
bool isName(llvm::StringRef text);

} // namespace cgc::ir
