// Parser: IR text to modules (docs/ir.md has the grammar). Reports every error of a file: after one
// it goes on at the next line, and what depends on a line that failed is not reported again.
#include "ir/did_you_mean.h"
#include "ir/op_def.h"
#include "ir/text.h"
#include "ir/token_reader.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

#include <limits>
#include <utility>

namespace cgc::ir {
namespace {

constexpr unsigned kMaxDepth = 64;

class Parser : private TokenReader {
public:
  Parser(llvm::StringRef text, llvm::StringRef fileName, Diagnostics &diagnostics)
      : TokenReader(text, fileName, diagnostics) {}

  std::unique_ptr<Module> parseFile();

private:
  /// What `->` in a graph's header says.
  struct DeclaredOutputs {
    std::optional<Token> arrow;
    std::vector<std::string> keys;
    std::vector<Type> types;
  };
  /// The right-hand side of a node.
  struct Call {
    NodeKind kind = NodeKind::CallFunction;
    OpKind op = OpKind::Fallback;
    bool inPlace = false;
    std::string target;
    std::vector<Arg> args;
  };
  struct Positioned {
    Arg arg;
    Token at;
  };
  /// The graph that is being parsed, and its names. A null value is that of a line that failed.
  struct Scope {
    Graph *graph = nullptr;
    llvm::StringMap<Value *> values;
    /// The header failed: names may be missing through no fault of the body.
    bool isIncomplete = false;
    bool hasOutput = false; ///< Or one that failed.
  };

  // Modules
  std::unique_ptr<Module> parseModule(unsigned depth);
  void parseMember(Module &module, unsigned depth);
  bool parseParameter(Module &module, Parameter::Kind kind);
  bool parseAttribute(Module &module);
  bool parseKey(std::string &key);
  /// `@name` of something that paths go through: no dots, not empty.
  bool parseDefinedName(std::string &name, Token &at);

  // Graphs
  void parseGraph(Module &module);
  bool parseGraphHeader(std::unique_ptr<Graph> &graph, Scope &scope, DeclaredOutputs &outputs);
  bool parseInput(Scope &scope);
  bool parseDeclaredOutputs(DeclaredOutputs &outputs);
  void parseBody(Scope &scope);
  bool checkOutputs(const Graph &graph, const DeclaredOutputs &declared);

  // Nodes
  bool parseNode(Scope &scope);
  bool parseNode(Scope &scope, llvm::ArrayRef<Token> names);
  bool parseOutput(Scope &scope);
  bool parseCall(Call &call);
  bool parseOp(Call &call);
  bool parseSchemaArgs(const Token &op, Call &call);
  bool parseResultTypes(size_t count, std::vector<Type> &types);
  bool parseArgs(std::vector<Positioned> &args);
  bool parseArgs(std::vector<Arg> &args);
  std::optional<Arg> parseArg(unsigned depth = 0);
  std::optional<Arg> parseList(unsigned depth);
  std::optional<Arg> parseNamedConstant();
  std::optional<Arg> lookUp();
  bool parseType(Type &type);
  bool skipDims();
  /// Nothing is read if the next token is not `loc`.
  bool parseLoc(Loc &loc);

  Scope *scope_ = nullptr; ///< Null outside graphs.
};

// ---- Modules

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
                          .Default(std::nullopt))
        return parseParameter(module, *kind);
    return fail(token_, "expected 'param', 'buffer', 'const', 'attr', 'module' or 'graph'");
  });
}

bool Parser::parseDefinedName(std::string &name, Token &at) {
  if (!expect(TokenKind::Symbol, "a name, as in '@weight'", at))
    return false;
  if (llvm::StringRef(at.text).contains('.'))
    return fail(at, "a name that is defined here has no dots: only paths have");
  name = at.text;
  return true;
}

bool Parser::parseParameter(Module &module, Parameter::Kind kind) {
  advance();
  Parameter parameter;
  parameter.kind = kind;
  Token at;
  if (!parseDefinedName(parameter.name, at) || !expect(':'))
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

bool Parser::parseKey(std::string &key) {
  if (token_.kind != TokenKind::Name && token_.kind != TokenKind::String)
    return failExpected("a name or a string");
  key = token_.text;
  advance();
  return true;
}

// ---- Graphs

void Parser::parseGraph(Module &module) {
  Token keyword = token_;
  unsigned errorsBefore = numErrors_;
  advance();
  std::unique_ptr<Graph> graph;
  Scope scope;
  DeclaredOutputs outputs;
  if (!parseGraphHeader(graph, scope, outputs)) {
    scope.isIncomplete = true;
    if (!skipToBody())
      return;
    if (!graph)
      graph = std::make_unique<Graph>("failed");
    scope.graph = graph.get();
  }
  scope_ = &scope;
  parseBody(scope);
  scope_ = nullptr;
  if (!consume('}') && numErrors_ == errorsBefore)
    fail(keyword, "this graph has no closing '}'");
  if (numErrors_ != errorsBefore || !checkOutputs(*graph, outputs))
    return;
  graph->setOutputNames(std::move(outputs.keys));
  if (module.findGraph(graph->name()))
    fail(keyword, "there are two graphs named '" + graph->name() + "'");
  else
    module.addGraph(std::move(graph));
}

bool Parser::parseGraphHeader(std::unique_ptr<Graph> &graph, Scope &scope,
                              DeclaredOutputs &outputs) {
  std::string name;
  Token at;
  if (!parseDefinedName(name, at))
    return false;
  graph = std::make_unique<Graph>(name);
  scope.graph = graph.get();
  if (!expect('('))
    return false;
  if (!consume(')')) {
    do
      if (!parseInput(scope))
        return false;
    while (consume(','));
    if (!expect(')'))
      return false;
  }
  if (token_.kind == TokenKind::Arrow && !parseDeclaredOutputs(outputs))
    return false;
  return expect('{');
}

bool Parser::parseInput(Scope &scope) {
  Token name;
  Type type;
  Loc loc;
  if (!expect(TokenKind::Value, "an input, as in '%x: f32[2,3]'", name) || !expect(':') ||
      !parseType(type) || !parseLoc(loc))
    return false;
  if (scope.values.count(name.text))
    return fail(name, "there are two inputs named '%" + name.text + "'");
  Node *node = scope.graph->placeholder(name.text, std::move(type), std::move(loc));
  scope.values[name.text] = node->result();
  return true;
}

bool Parser::parseDeclaredOutputs(DeclaredOutputs &outputs) {
  outputs.arrow = token_;
  advance();
  if (!consume('('))
    return parseType(outputs.types.emplace_back());
  if (consume(')'))
    return true;
  do {
    // `dynamic`, `f16[...]` and `key: ...` all begin with a name: the colon tells them apart.
    Token first = token_;
    bool keyed = first.kind == TokenKind::String;
    if (first.kind == TokenKind::Name) {
      Lexer lookAhead = lexer_;
      Token second = lookAhead.next();
      keyed = second.kind == TokenKind::Punct && second.punct == ':';
    }
    if (keyed && (!parseKey(outputs.keys.emplace_back()) || !expect(':')))
      return false;
    if (!parseType(outputs.types.emplace_back()))
      return false;
    if (!outputs.keys.empty() && outputs.keys.size() != outputs.types.size())
      return fail(first, "either every output has a key or none has");
  } while (consume(','));
  return expect(')');
}

void Parser::parseBody(Scope &scope) {
  while (token_.kind != TokenKind::End && !atPunct('}')) {
    if (atName("graph") || atName("module")) {
      fail(token_, "a graph cannot hold a " + token_.text + ": is a '}' missing above?");
      return;
    }
    recover([&] { return parseNode(scope); });
  }
}

bool Parser::checkOutputs(const Graph &graph, const DeclaredOutputs &declared) {
  const Node *output = graph.output();
  if (!output || !declared.arrow)
    return true;
  if (declared.types.size() != output->args().size())
    return fail(*declared.arrow, "the header says " + std::to_string(declared.types.size()) +
                                     " outputs, the output node has " +
                                     std::to_string(output->args().size()));
  for (const auto &[i, arg] : llvm::enumerate(output->args())) {
    Type type = arg.isValue() ? arg.value()->type() : Type();
    if (type != declared.types[i])
      return fail(*declared.arrow, "the header says " + toString(declared.types[i]) +
                                       " for output " + std::to_string(i) + ", its type is " +
                                       toString(type));
  }
  return true;
}

// ---- Nodes

bool Parser::parseNode(Scope &scope) {
  if (atName("output"))
    return parseOutput(scope);
  std::vector<Token> names;
  bool ok = true;
  if (token_.kind == TokenKind::Value) {
    do
      ok = expect(TokenKind::Value, "a result, as in '%0'", names.emplace_back());
    while (ok && consume(','));
    ok = ok && expect('=');
  }
  ok = ok && parseNode(scope, names);
  if (!ok)
    for (const Token &name : names)
      if (name.kind == TokenKind::Value)
        scope.values.try_emplace(name.text, nullptr);
  return ok;
}

bool Parser::parseNode(Scope &scope, llvm::ArrayRef<Token> names) {
  Token at = token_;
  Call call;
  std::vector<Type> types;
  Loc loc;
  if (!parseCall(call) || !parseResultTypes(names.size(), types) || !parseLoc(loc))
    return false;
  for (const auto &[i, name] : llvm::enumerate(names)) {
    auto same = [&](const Token &other) { return other.text == name.text; };
    if (scope.values.count(name.text) || llvm::any_of(names.take_front(i), same))
      return fail(name, "'%" + name.text + "' is defined twice");
  }
  Graph &graph = *scope.graph;
  auto numResults = static_cast<unsigned>(names.size());
  Node *node = nullptr;
  if (call.kind == NodeKind::GetAttr) {
    if (numResults != 1)
      return fail(at, "get_attr has one result");
    node = graph.getAttr(call.target, Type(), std::move(loc));
  } else if (call.kind == NodeKind::CallModule) {
    node = graph.callModule(call.target, std::move(call.args), numResults, std::move(loc));
  } else {
    node = graph.call(call.op, std::move(call.args), numResults, std::move(loc));
    node->setInPlace(call.inPlace);
    node->setTarget(std::move(call.target));
  }
  // Away from the provisional names first: one of them may be another result's name.
  for (Value &result : node->results())
    graph.rename(&result, "<provisional>");
  for (Value &result : node->results()) {
    const std::string &name = names[result.index()].text;
    graph.rename(&result, name);
    result.setType(std::move(types[result.index()]));
    scope.values[name] = &result;
  }
  return true;
}

bool Parser::parseOutput(Scope &scope) {
  if (std::exchange(scope.hasOutput, true))
    return fail(token_, "a graph has one output node");
  advance();
  std::vector<Arg> args;
  bool isEmpty =
      token_.startsLine || token_.kind == TokenKind::End || atPunct('}') || atName("loc");
  if (!isEmpty) {
    do {
      auto arg = parseArg();
      if (!arg)
        return false;
      args.push_back(std::move(*arg));
    } while (consume(','));
  }
  Loc loc;
  if (!parseLoc(loc))
    return false;
  scope.graph->createOutput(std::move(args), std::move(loc));
  return true;
}

bool Parser::parseCall(Call &call) {
  bool isGetAttr = atName("get_attr");
  if (!isGetAttr && !atName("call_module"))
    return parseOp(call);
  advance();
  Token target;
  if (!expect(TokenKind::Symbol, "a path, as in '@conv1.weight'", target))
    return false;
  call.target = std::move(target.text);
  call.kind = isGetAttr ? NodeKind::GetAttr : NodeKind::CallModule;
  return isGetAttr || parseArgs(call.args);
}

bool Parser::parseOp(Call &call) {
  Token op;
  if (!expect(TokenKind::Name, "an op, 'get_attr' or 'call_module'", op))
    return false;
  llvm::StringRef name = op.text;
  auto kind = parseOpName(name);
  if (!kind && name.consume_back("_")) {
    call.inPlace = true;
    kind = parseOpName(name);
  }
  if (!kind) {
    std::vector<llvm::StringRef> names;
    for (unsigned i = 0; i < kNumOps; ++i)
      names.push_back(opName(static_cast<OpKind>(i)));
    return fail(op, "no op '" + op.text + "'" + didYouMean(op.text, names));
  }
  call.op = *kind;
  if (call.op != OpKind::Fallback)
    return parseSchemaArgs(op, call);
  Token schema;
  Arg::List args;
  if (!expect(TokenKind::String, "the ATen schema in quotes", schema) || !parseArgs(args))
    return false;
  call.target = std::move(schema.text);
  call.args.emplace_back(std::move(args));
  return true;
}

bool Parser::parseSchemaArgs(const Token &op, Call &call) {
  const Schema &schema = opSchema(call.op);
  std::vector<std::optional<Arg>> found(schema.args.size());
  std::vector<Positioned> positional;
  if (!parseArgs(positional))
    return false;
  size_t next = 0;
  for (Positioned &argument : positional) {
    while (next < found.size() && !standsInParentheses(schema.args[next]))
      ++next;
    if (next == found.size())
      return fail(argument.at, "too many arguments in the parentheses of " + op.text);
    found[next++] = std::move(argument.arg);
  }
  if (consume('{')) {
    do {
      Token name;
      if (!expect(TokenKind::Name, "an argument's name", name))
        return false;
      auto index = schema.find(name.text);
      if (!index) {
        std::vector<llvm::StringRef> names;
        for (const SchemaArg &arg : schema.args)
          names.push_back(arg.name);
        return fail(name, op.text + " has no argument '" + name.text + "'" +
                              didYouMean(name.text, names));
      }
      if (standsInParentheses(schema.args[*index]))
        return fail(name, "argument '" + name.text + "' stands in the parentheses");
      if (found[*index])
        return fail(name, "argument '" + name.text + "' is there twice");
      if (!expect('='))
        return false;
      found[*index] = parseArg();
      if (!found[*index])
        return false;
    } while (consume(','));
    if (!expect('}'))
      return false;
  }
  for (const auto &[expected, arg] : llvm::zip(schema.args, found)) {
    if (!arg && !expected.defaultValue)
      return fail(op, "argument '" + expected.name + "' of " + op.text + " is missing");
    call.args.push_back(arg ? std::move(*arg) : *expected.defaultValue);
  }
  return true;
}

bool Parser::parseResultTypes(size_t count, std::vector<Type> &types) {
  if (count == 0)
    return true;
  if (!expect(':'))
    return false;
  Token at = token_;
  do
    if (!parseType(types.emplace_back()))
      return false;
  while (consume(','));
  return types.size() == count ||
         fail(at, "expected " + std::to_string(count) + " types, one for each result, got " +
                      std::to_string(types.size()));
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
    for (const auto &entry : scope_->values) // The nearest name does not depend on their order.
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

} // namespace

std::unique_ptr<Module> parseModule(llvm::StringRef text, llvm::StringRef fileName,
                                    Diagnostics &diagnostics) {
  return Parser(text, fileName, diagnostics).parseFile();
}

} // namespace cgc::ir
