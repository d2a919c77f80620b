// NodeParser: the nodes of a program, those of its parts under another mode among them.
#pragma once

#include "frontend/exported/json.h"

#include "llvm/ADT/StringMap.h"

#include <string>
#include <vector>

namespace cgc::exported {

/// Parses graphs of torch.export's schema. A part under torch.no_grad(), or with autocast switched
/// off, is a graph of its own in the file. Its nodes become nodes of the program, with names of
/// their own.
class NodeParser final {
public:
  /// Adds to `nodes`, which it borrows.
  explicit NodeParser(std::vector<Node> &nodes) : nodes_(nodes) {}

  /// Throws if `graph` has another form.
  void parse(const Json &graph) { names_ = parse(graph, "", Names()); }
  /// Returns what an argument of the outermost graph stands for.
  Argument resolve(const Argument &argument) const { return resolve(argument, "", names_); }

private:
  using Names = llvm::StringMap<Argument>; // Never iterated.

  /// A value has its name with `prefix`, unless `names` has another argument for it. Returns all of
  /// these.
  Names parse(const Json &graph, const std::string &prefix, Names names);
  /// The input `part` of the call is a graph, whose operands follow.
  void parsePart(const Json &call, size_t part, bool hasGradients, const std::string &prefix,
                 Names &names);
  static Argument resolve(const Argument &argument, const std::string &prefix, const Names &names);

  std::vector<Node> &nodes_;
  Names names_; ///< Of the outermost graph.
  size_t numParts_ = 0;
};

} // namespace cgc::exported
