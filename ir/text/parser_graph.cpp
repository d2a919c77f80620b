// Parser: graphs, their nodes, and calls checked against op schemas.
#include "ir/text/parser.h"

#include "ir/op_def.h"
#include "ir/text/text.h"
#include "support/did_you_mean.h"

#include "llvm/ADT/STLExtras.h"

#include <utility>

namespace cgc::ir {

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
  positions_[graph.get()] = at.begin;
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
      !parseType(type))
    return false;
  std::vector<Arg> defaults;
  if (consume('=')) {
    std::optional<Arg> value = parseArg();
    if (!value)
      return false;
    defaults.push_back(std::move(*value));
  }
  if (!parseLoc(loc))
    return false;
  if (scope.values.count(name.text))
    return fail(name, "there are two inputs named '%" + name.text + "'");
  Node *node = scope.graph->placeholder(name.text, std::move(type), std::move(loc));
  node->setArgs(std::move(defaults));
  scope.values[name.text] = node->result();
  positions_[node] = name.begin;
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
    // `dynamic`, `f16[...]` and `key: ...` all begin with a name; the colon distinguishes them.
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
  if (declared.types.size() != graph.outputs().size())
    return fail(*declared.arrow, "the header says " + std::to_string(declared.types.size()) +
                                     " outputs, the output node has " +
                                     std::to_string(graph.outputs().size()));
  for (const auto &[i, arg] : llvm::enumerate(graph.outputs())) {
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
  positions_[node] = at.begin;
  // Renames away from the provisional names first: one of them may be the final name of another
  // result.
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
  Token at = token_;
  if (std::exchange(scope.hasOutput, true))
    return fail(at, "a graph has one output node");
  advance();
  std::vector<Arg> args;
  std::vector<std::pair<Token, Value *>> states;
  bool isEmpty =
      token_.startsLine || token_.kind == TokenKind::End || atPunct('}') || atName("loc");
  if (!isEmpty) {
    do {
      if (atName("state")) {
        if (!parseStateWrite(states.emplace_back()))
          return false;
        continue;
      }
      Token argAt = token_;
      auto arg = parseArg();
      if (!arg)
        return false;
      if (!states.empty())
        return fail(argAt, "outputs stand before the written states");
      args.push_back(std::move(*arg));
    } while (consume(','));
  }
  Loc loc;
  if (!parseLoc(loc))
    return false;
  positions_[scope.graph->createOutput(std::move(args), std::move(loc))] = at.begin;
  for (const auto &[path, value] : states) {
    if (llvm::is_contained(scope.graph->stateWrites(), path.text))
      return fail(path, "state '@" + path.text + "' is written twice");
    scope.graph->addStateWrite(path.text, value);
  }
  return true;
}

bool Parser::parseStateWrite(std::pair<Token, Value *> &write) {
  advance();
  if (!expect(TokenKind::Symbol, "a state, as in 'state @weight = %1'", write.first) ||
      !expect('='))
    return false;
  Token at = token_;
  auto value = parseArg();
  if (!value)
    return false;
  if (!value->isValue())
    return fail(at, "the new value of a state is a value of the graph");
  write.second = value->value();
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
    while (next < found.size() && !isPositional(schema.args[next]))
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
      if (isPositional(schema.args[*index]))
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

} // namespace cgc::ir
