// Parser: IR text to modules, by recursive descent. Private to its three files: parser.cpp parses
// modules, parser_graph.cpp graphs and nodes, parser_values.cpp arguments, types and locations.
#pragma once

#include "ir/module.h"
#include "ir/text/token_reader.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cgc::ir {

/// Functions that return bool or an optional report their errors themselves.
class Parser final : private TokenReader {
public:
  Parser(llvm::StringRef text, llvm::StringRef fileName, Diagnostics &diagnostics)
      : TokenReader(text, fileName, diagnostics) {}

  std::unique_ptr<Module> parseFile();

  /// Sets the position at which the text defines a node or a graph made by parseFile(), for
  /// Diagnostics.
  void locate(const void *nodeOrGraph, Diagnostic &diagnostic) const;

private:
  static constexpr unsigned kMaxDepth = 64; ///< Bounds the nesting of modules and of lists.

  /// The outputs declared after `->` in a graph's header.
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
  /// The graph that is being parsed, and its names. A null value marks a name whose line failed.
  struct Scope {
    Graph *graph = nullptr;
    llvm::StringMap<Value *> values;
    /// The header failed, so names may be missing although the body is correct.
    bool isIncomplete = false;
    bool hasOutput = false; ///< Also set by an output that failed.
  };

  // parser.cpp: modules
  std::unique_ptr<Module> parseModule(unsigned depth);
  void parseMember(Module &module, unsigned depth);
  bool parseParameter(Module &module, Parameter::Kind kind);
  /// Consumes nothing if the next token is not `role`.
  bool parseRole(StateRole &role);
  /// Consumes nothing if the next token is not `shard`.
  bool parseShard(std::optional<uint32_t> &shard);
  bool parseAttribute(Module &module);

  // parser_graph.cpp: graphs
  void parseGraph(Module &module);
  bool parseGraphHeader(std::unique_ptr<Graph> &graph, Scope &scope, DeclaredOutputs &outputs);
  bool parseInput(Scope &scope);
  bool parseDeclaredOutputs(DeclaredOutputs &outputs);
  void parseBody(Scope &scope);
  bool checkOutputs(const Graph &graph, const DeclaredOutputs &declared);

  // parser_graph.cpp: nodes
  bool parseNode(Scope &scope);
  bool parseNode(Scope &scope, llvm::ArrayRef<Token> names);
  bool parseOutput(Scope &scope);
  /// Parses `state @path = %value`.
  bool parseStateWrite(std::pair<Token, Value *> &write);
  bool parseCall(Call &call);
  bool parseOp(Call &call);
  bool parseSchemaArgs(const Token &op, Call &call);
  bool parseResultTypes(size_t count, std::vector<Type> &types);

  // parser_values.cpp
  /// Parses the `@name` of a definition that paths go through: not empty, without dots.
  bool parseDefinedName(std::string &name, Token &at);
  bool parseKey(std::string &key);
  bool parseArgs(std::vector<Positioned> &args);
  bool parseArgs(std::vector<Arg> &args);
  std::optional<Arg> parseArg(unsigned depth = 0);
  std::optional<Arg> parseList(unsigned depth);
  std::optional<Arg> parseNamedConstant();
  std::optional<Arg> lookUp();
  bool parseType(Type &type);
  bool skipDims();
  /// Consumes nothing if the next token is not `loc`.
  bool parseLoc(Loc &loc);

  Scope *scope_ = nullptr; ///< Null outside graphs.
  /// Positions of nodes and graphs; looked up, never iterated.
  llvm::DenseMap<const void *, const char *> positions_;
};

} // namespace cgc::ir
