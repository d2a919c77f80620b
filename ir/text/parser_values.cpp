// Parser: names, arguments, constants, types and locations.
#include "ir/text/parser.h"

#include "support/did_you_mean.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <limits>

namespace cgc::ir {

bool Parser::parseDefinedName(std::string &name, Token &at) {
  if (!expect(TokenKind::Symbol, "a name, as in '@weight'", at))
    return false;
  if (llvm::StringRef(at.text).contains('.'))
    return fail(at, "a name that is defined here has no dots: only paths have");
  name = at.text;
  return true;
}

bool Parser::parseKey(std::string &key) {
  if (token_.kind != TokenKind::Name && token_.kind != TokenKind::String)
    return failExpected("a name or a string");
  key = token_.text;
  advance();
  return true;
}

bool Parser::parseArgs(std::vector<Positioned> &args) {
  if (!expect('('))
    return false;
  if (consume(')'))
    return true;
  do {
    Token at = token_;
    auto arg = parseArg();
    if (!arg)
      return false;
    args.push_back({std::move(*arg), std::move(at)});
  } while (consume(','));
  return expect(')');
}

bool Parser::parseArgs(std::vector<Arg> &args) {
  std::vector<Positioned> positioned;
  if (!parseArgs(positioned))
    return false;
  for (Positioned &argument : positioned)
    args.push_back(std::move(argument.arg));
  return true;
}

std::optional<Arg> Parser::parseArg(unsigned depth) {
  std::optional<Arg> arg;
  switch (token_.kind) {
  case TokenKind::Value:
    arg = lookUp();
    break;
  case TokenKind::Int:
    arg = Arg(token_.intValue);
    break;
  case TokenKind::Float:
    arg = Arg(token_.floatValue);
    break;
  case TokenKind::String:
    arg = Arg(token_.text);
    break;
  case TokenKind::Name:
    arg = parseNamedConstant();
    break;
  default:
    if (atPunct('['))
      return parseList(depth);
    failExpected("a value, a constant or a list");
  }
  if (arg)
    advance();
  return arg;
}

std::optional<Arg> Parser::parseNamedConstant() {
  if (auto dtype = parseDType(token_.text))
    return Arg(*dtype);
  if (auto device = parseDevice(token_.text))
    return Arg(*device);
  auto constant = llvm::StringSwitch<std::optional<Arg>>(token_.text)
                      .Case("none", Arg())
                      .Case("true", Arg(true))
                      .Case("false", Arg(false))
                      .Case("inf", Arg(std::numeric_limits<double>::infinity()))
                      .Case("nan", Arg(std::numeric_limits<double>::quiet_NaN()))
                      .Default(std::nullopt);
  if (!constant)
    fail(token_, "no constant '" + token_.text + "'; values begin with '%', strings with '\"'");
  return constant;
}

std::optional<Arg> Parser::parseList(unsigned depth) {
  if (depth >= kMaxDepth) {
    fail(token_, "lists are nested more than 64 deep");
    giveUp();
    return std::nullopt;
  }
  advance();
  Arg::List list;
  if (consume(']'))
    return Arg(std::move(list));
  do {
    auto element = parseArg(depth + 1);
    if (!element)
      return std::nullopt;
    list.push_back(std::move(*element));
  } while (consume(','));
  if (!expect(']'))
    return std::nullopt;
  return Arg(std::move(list));
}

std::optional<Arg> Parser::lookUp() {
  if (!scope_) {
    fail(token_, "a value of a graph cannot stand here: an attribute is a constant");
    return std::nullopt;
  }
  auto it = scope_->values.find(token_.text);
  if (it != scope_->values.end())
    return it->second ? std::optional<Arg>(it->second) : std::nullopt;
  if (!scope_->isIncomplete) {
    std::vector<llvm::StringRef> names;
    for (const auto &entry : scope_->values) // The nearest name does not depend on the iteration
                                             // order.
      names.push_back(entry.first());
    fail(token_,
         "no value '%" + token_.text + "' before this line" + didYouMean(token_.text, names, "%"));
  }
  return std::nullopt;
}

bool Parser::parseType(Type &type) {
  if (atName("dynamic")) {
    advance();
    return true;
  }
  Token first = token_;
  if (first.kind != TokenKind::Name)
    return failExpected("a type");
  advance();
  if (!atPunct('['))
    return fail(first, "expected a type, as in 'f32[2,3]'; 'f32[]' is a scalar");
  if (!skipDims() || (atPunct('[') && !skipDims()))
    return false;
  if (token_.kind == TokenKind::Symbol)
    advance();
  std::string text(first.begin, lastEnd_);
  llvm::erase_if(text, [](char c) { return c == ' ' || c == '\t'; });
  auto tensor = parseTensorType(text);
  if (!tensor)
    return fail(first, "'" + text + "' is not a type");
  type = std::move(*tensor);
  return true;
}

bool Parser::skipDims() {
  advance();
  if (consume(']'))
    return true;
  Token dim;
  do
    if (!expect(TokenKind::Int, "a size", dim))
      return false;
  while (consume(','));
  return expect(']');
}

bool Parser::parseLoc(Loc &loc) {
  if (!atName("loc"))
    return true;
  advance();
  Token file, line;
  if (!expect('(') || !expect(TokenKind::String, "the file in quotes", file) || !expect(':') ||
      !expect(TokenKind::Int, "the line", line))
    return false;
  if (line.intValue < 0 || line.intValue > std::numeric_limits<unsigned>::max())
    return fail(line, "'" + std::string(line.begin, line.end) + "' is not a line number");
  loc.file = std::move(file.text);
  loc.line = static_cast<unsigned>(line.intValue);
  if (token_.kind == TokenKind::String) {
    loc.module = std::move(token_.text);
    advance();
  }
  return expect(')');
}

} // namespace cgc::ir
