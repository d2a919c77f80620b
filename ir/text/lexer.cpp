// Lexer: numbers, strings, names and punctuation of IR text.
#include "ir/text/lexer.h"

#include "llvm/ADT/StringExtras.h"

#include <charconv>

namespace cgc::ir {
namespace {

bool isBareChar(char c) {
  return llvm::isAlnum(c) || c == '_' || c == '.';
}
bool startsName(char c) {
  return llvm::isAlpha(c) || c == '_';
}

Token &invalid(Token &token, std::string message) {
  token.kind = TokenKind::Invalid;
  token.text = std::move(message);
  return token;
}

} // namespace

std::string quoted(llvm::StringRef text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      ((out += "\\x") += llvm::hexdigit((c >> 4) & 15)) += llvm::hexdigit(c & 15);
    else
      out += c;
  }
  return out += '"';
}

bool isBareName(llvm::StringRef text) {
  return !text.empty() && llvm::all_of(text, isBareChar);
}

bool isName(llvm::StringRef text) {
  return isBareName(text) && startsName(text.front());
}

Token Lexer::next() {
  Token token;
  bool newLine = !lexedAny_;
  while (cursor_ != end_) {
    if (*cursor_ == '\n')
      newLine = true;
    else if (*cursor_ == ';') {
      cursor_ = std::find(cursor_, end_, '\n');
      continue;
    } else if (*cursor_ != ' ' && *cursor_ != '\t' && *cursor_ != '\r')
      break;
    ++cursor_;
  }
  lexedAny_ = true;
  token.startsLine = newLine;
  token.begin = cursor_;
  if (cursor_ != end_)
    lexToken(token);
  token.end = cursor_;
  return token;
}

void Lexer::lexToken(Token &token) {
  char c = *cursor_;
  if (startsName(c)) {
    token.kind = TokenKind::Name;
    cursor_ = std::find_if_not(cursor_, end_, isBareChar);
    token.text.assign(token.begin, cursor_);
  } else if (llvm::isDigit(c) || (c == '-' && cursor_ + 1 != end_ && cursor_[1] != '>')) {
    lexNumber(token);
  } else if (c == '"') {
    token.kind = TokenKind::String;
    lexString(token);
  } else if (c == '%') {
    lexSigil(token, TokenKind::Value);
  } else if (c == '@') {
    lexSigil(token, TokenKind::Symbol);
  } else if (llvm::StringRef(cursor_, end_ - cursor_).starts_with("->")) {
    token.kind = TokenKind::Arrow;
    cursor_ += 2;
  } else if (llvm::StringRef("()[]{},:=").contains(c)) {
    token.kind = TokenKind::Punct;
    token.punct = c;
    ++cursor_;
  } else {
    ++cursor_;
    invalid(token,
            "unexpected character " + (llvm::isPrint(c) ? "'" + std::string(1, c) + "'"
                                                        : "\\x" + llvm::utohexstr(c & 0xff)));
  }
}

void Lexer::lexNumber(Token &token) {
  // Takes every character that could belong to the number, so that `1x` is one invalid token rather
  // than two valid ones.
  ++cursor_;
  while (cursor_ != end_ && (isBareChar(*cursor_) || ((*cursor_ == '-' || *cursor_ == '+') &&
                                                      (cursor_[-1] == 'e' || cursor_[-1] == 'E'))))
    ++cursor_;
  llvm::StringRef text(token.begin, cursor_ - token.begin);
  llvm::StringRef digits = text;
  digits.consume_front("-");
  if (text == "-inf") {
    token.kind = TokenKind::Float;
    token.floatValue = -std::numeric_limits<double>::infinity();
    return;
  }
  bool isFloat = digits.find_first_of(".eE") != llvm::StringRef::npos;
  std::from_chars_result result{};
  if (isFloat)
    result = std::from_chars(text.begin(), text.end(), token.floatValue);
  else
    result = std::from_chars(text.begin(), text.end(), token.intValue);
  if (digits.empty() || !llvm::isDigit(digits.front()) ||
      result.ec == std::errc::invalid_argument || result.ptr != text.end())
    invalid(token, "malformed number '" + text.str() + "'");
  else if (result.ec == std::errc::result_out_of_range)
    invalid(token, "the number '" + text.str() + "' is out of range");
  else
    token.kind = isFloat ? TokenKind::Float : TokenKind::Int;
}

void Lexer::lexString(Token &token) {
  ++cursor_;
  while (true) {
    if (cursor_ == end_ || *cursor_ == '\n') {
      invalid(token, "this string has no closing quote on its line");
      return;
    }
    char c = *cursor_++;
    if (c == '"')
      return;
    if (c != '\\') {
      token.text += c;
      continue;
    }
    char escape = cursor_ == end_ ? '\n' : *cursor_;
    if (escape == 'x' && end_ - cursor_ >= 3 && llvm::isHexDigit(cursor_[1]) &&
        llvm::isHexDigit(cursor_[2])) {
      token.text +=
          static_cast<char>(llvm::hexDigitValue(cursor_[1]) * 16 + llvm::hexDigitValue(cursor_[2]));
      cursor_ += 3;
    } else if (escape == '"' || escape == '\\' || escape == 'n' || escape == 't') {
      token.text += escape == 'n' ? '\n' : escape == 't' ? '\t' : escape;
      ++cursor_;
    } else {
      invalid(token, "unknown escape in a string; known are \\\" \\\\ \\n \\t \\xNN");
      return;
    }
  }
}

void Lexer::lexSigil(Token &token, TokenKind kind) {
  token.kind = kind;
  char sigil = *cursor_++;
  if (cursor_ != end_ && *cursor_ == '"') {
    lexString(token);
    if (token.kind == kind && token.text.empty())
      invalid(token, "a name must not be empty");
    return;
  }
  cursor_ = std::find_if_not(cursor_, end_, isBareChar);
  token.text.assign(token.begin + 1, cursor_);
  if (token.text.empty())
    invalid(token, std::string("expected a name after '") + sigil + "'");
}

} // namespace cgc::ir
