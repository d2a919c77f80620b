// Lexer: cuts IR text into tokens with positions. docs/ir.md has the grammar. Private to the
// parser.
#pragma once

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace cgc::ir {

enum class TokenKind : uint8_t {
  End,
  Invalid, ///< `text` is what is wrong.
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
  const char *begin = nullptr; ///< Where it starts and ends in the buffer.
  const char *end = nullptr;
  std::string text;
  int64_t intValue = 0;
  double floatValue = 0;
  char punct = 0;
  bool startsLine = false; ///< Nothing but blanks precedes it on its line.
};

class Lexer {
public:
  /// Borrows `text`.
  explicit Lexer(llvm::StringRef text) : cursor_(text.begin()), end_(text.end()) {}

  /// The next token; End again and again at the end.
  Token next();

private:
  void lexToken(Token &token);
  void lexNumber(Token &token);
  /// A quoted string; the cursor is at the quote. Fills `token.text`, or makes the token Invalid.
  void lexString(Token &token);
  void lexSigil(Token &token, TokenKind kind);

  const char *cursor_;
  const char *end_;
  bool lexedAny_ = false;
};

/// `text` in quotes, escaped so that the lexer reads it back.
std::string quoted(llvm::StringRef text);
/// Whether `%text` and `@text` need no quotes.
bool isBareName(llvm::StringRef text);
/// Whether `text` is one Name token.
bool isName(llvm::StringRef text);

} // namespace cgc::ir
