// Parser: the file and its modules (docs/ir.md has the grammar). Reports every error of a file:
// after an error, parsing resumes at the next line, and uses of names from a failed line are not
// reported.
#include "ir/text/parser.h"

#include "ir/text/text.h"
#include "ir/verifier.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

namespace cgc::ir {

std::unique_ptr<Module> Parser::parseFile() {
  std::unique_ptr<Module> root;
  bool isModule = false;
  while (token_.kind != TokenKind::End) {
    if (atName("module") && !root) {
      root = parseModule(0);
      isModule = true;
    } else if (atName("graph") && !isModule) {
      if (!root)
        root = std::make_unique<Module>("root", "");
      parseGraph(*root);
    } else {
      recover([&] {
        return root ? fail(token_, isModule ? "expected the end of the file: it holds one module"
                                            : "expected 'graph'")
                    : fail(token_, "expected 'module' or 'graph'");
      });
    }
  }
  if (!root && numErrors_ == 0)
    fail(token_, "the file holds no module and no graph");
  return numErrors_ == 0 ? std::move(root) : nullptr;
}

std::unique_ptr<Module> Parser::parseModule(unsigned depth) {
  Token keyword = token_;
  advance();
  if (depth > kMaxDepth) {
    fail(keyword, "modules are nested more than 64 deep");
    giveUp();
  }
  Token name, className;
  auto parseHeader = [&] {
    if (!expect(TokenKind::Symbol, "the module's name, as in '@visual'", name))
      return false;
    if (depth > 0 && llvm::StringRef(name.text).contains('.'))
      return fail(name, "a submodule's name has no dots");
    if (atName("class")) {
      advance();
      if (!expect('=') || !expect(TokenKind::String, "the class name in quotes", className))
        return false;
    }
    return expect('{');
  };
  bool hasBody = parseHeader() || skipToBody();
  auto module = std::make_unique<Module>(name.text, className.text);
  if (!hasBody)
    return module;
  while (token_.kind != TokenKind::End && !atPunct('}'))
    parseMember(*module, depth);
  if (!consume('}'))
    fail(keyword, "this module has no closing '}'");
  return module;
}

void Parser::parseMember(Module &module, unsigned depth) {
  if (atName("module")) {
    Token at = token_;
    auto submodule = parseModule(depth + 1);
    if (module.findSubmodule(submodule->name()))
      fail(at, "there are two submodules named '" + submodule->name() + "'");
    else
      module.addSubmodule(std::move(submodule));
    return;
  }
  if (atName("graph")) {
    parseGraph(module);
    return;
  }
  recover([&] {
    if (atName("attr"))
      return parseAttribute(module);
    if (token_.kind == TokenKind::Name)
      if (auto kind = llvm::StringSwitch<std::optional<Parameter::Kind>>(token_.text)
                          .Case("param", Parameter::Kind::Parameter)
                          .Case("buffer", Parameter::Kind::Buffer)
                          .Case("const", Parameter::Kind::Constant)
                          .Case("state", Parameter::Kind::State)
                          .Default(std::nullopt))
        return parseParameter(module, *kind);
    return fail(token_,
                "expected 'param', 'buffer', 'const', 'state', 'attr', 'module' or 'graph'");
  });
}

bool Parser::parseParameter(Module &module, Parameter::Kind kind) {
  advance();
  Parameter parameter;
  parameter.kind = kind;
  Token at;
  if (!parseDefinedName(parameter.name, at) ||
      (kind == Parameter::Kind::State &&
       (!parseRole(parameter.role) || !parseShard(parameter.shard))) ||
      !expect(':'))
    return false;
  Token typeAt = token_;
  Type type;
  if (!parseType(type))
    return false;
  if (type.isDynamic())
    return fail(typeAt, "a parameter's type is not dynamic");
  if (llvm::any_of(module.parameters(), [&](auto &p) { return p.name == parameter.name; }))
    return fail(at, "there are two parameters named '" + parameter.name + "'");
  parameter.type = type.tensor();
  module.addParameter(std::move(parameter));
  return true;
}

bool Parser::parseRole(StateRole &role) {
  if (!atName("role"))
    return true;
  advance();
  Token name;
  if (!expect('=') || !expect(TokenKind::String, "a role, as in 'role=\"optimizer\"'", name))
    return false;
  const auto parsed = parseStateRole(name.text);
  if (!parsed) {
    std::string roles;
    for (uint8_t i = 0; i < kNumStateRoles; ++i)
      roles += (i == 0 ? "" : ", ") + std::string(stateRoleName(StateRole(i)));
    return fail(name, "'" + name.text + "' is no role; there are " + roles);
  }
  role = *parsed;
  return true;
}

bool Parser::parseShard(std::optional<uint32_t> &shard) {
  if (!atName("shard"))
    return true;
  advance();
  Token number;
  if (!expect('=') || !expect(TokenKind::Int, "the number of a shard, as in 'shard=3'", number))
    return false;
  if (number.intValue < 0 || number.intValue >= UINT32_MAX)
    return fail(number, "there is no such shard");
  shard = static_cast<uint32_t>(number.intValue);
  return true;
}

bool Parser::parseAttribute(Module &module) {
  advance();
  Token at = token_;
  Attribute attribute;
  if (!parseKey(attribute.name) || !expect('='))
    return false;
  auto value = parseArg();
  if (!value)
    return false;
  if (llvm::any_of(module.attributes(), [&](auto &a) { return a.name == attribute.name; }))
    return fail(at, "there are two attributes named '" + attribute.name + "'");
  attribute.value = std::move(*value);
  module.addAttribute(std::move(attribute));
  return true;
}

void Parser::locate(const void *nodeOrGraph, Diagnostic &diagnostic) const {
  if (const char *position = positions_.lookup(nodeOrGraph))
    place(position, diagnostic);
}

std::unique_ptr<Module> parseModule(llvm::StringRef text, llvm::StringRef fileName,
                                    Diagnostics &diagnostics) {
  return Parser(text, fileName, diagnostics).parseFile();
}

std::unique_ptr<Module> parseAndVerify(llvm::StringRef text, llvm::StringRef fileName,
                                       Diagnostics &diagnostics) {
  Parser parser(text, fileName, diagnostics);
  std::unique_ptr<Module> module = parser.parseFile();
  if (!module)
    return nullptr;
  diagnostics.setLocator(
      [&](const void *object, Diagnostic &diagnostic) { parser.locate(object, diagnostic); });
  const bool isValid = verify(*module, diagnostics);
  diagnostics.setLocator({});
  return isValid ? std::move(module) : nullptr;
}

Status checkRoundTrip(const Module &module) {
  const std::string text = toString(module);
  Diagnostics errors;
  const auto parsed = parseModule(text, "printed", errors);
  if (!parsed)
    return Status(Code::Failed, "the text of module @" + module.name() +
                                    " cannot be parsed, which is a bug of cgc:\n" +
                                    errors.render());
  const std::string again = toString(*parsed);
  llvm::StringRef before = text, after = again;
  for (unsigned line = 1; before != after; ++line) {
    const auto [was, moreBefore] = before.split('\n');
    const auto [is, moreAfter] = after.split('\n');
    if (was != is)
      return Status(Code::Failed, "the text of module @" + module.name() +
                                      " does not round-trip, which is a bug of cgc: line " +
                                      std::to_string(line) + "\n  " + was.str() +
                                      "\ncomes back as\n  " + is.str());
    before = moreBefore;
    after = moreAfter;
  }
  return Status::ok();
}

} // namespace cgc::ir
