// Graph, Node and Value: an ordered list of nodes, as in torch.fx, with typed results.
//
// Invariants (the verifier checks them):
//  - list order is execution order; a node's arguments are results of earlier nodes of the same
//    graph;
//  - placeholders come first; exactly one output node, last;
//  - a Graph owns its nodes and a Node owns its results. Other code borrows pointers, which stay
//    valid until the node is erased; a node with users cannot be erased;
//  - a value lists its users. Arguments are changed only through Node, which keeps the lists right.
//
// The frontend, the parser, `inline`, `specialize` and rewrites of module substitutions build
// graphs through Graph and Node. Every later pass changes a graph only through GraphRewriter.
#pragma once

#include "ir/arg.h"
#include "ir/op_kind.h"
#include "ir/type.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/ilist.h"
#include "llvm/ADT/ilist_node.h"
#include "llvm/ADT/iterator_range.h"

#include <memory>
#include <string>
#include <vector>

namespace cgc::ir {

class Graph;
class Module;
class Node;

/// Origin of a node: the model's source file and line, and the path of the module it ran in. Use
/// Loc::unknown() for an unknown location. Rewrites copy the location of the nodes they replace.
struct Loc {
  std::string file;   ///< As TorchScript recorded it; empty if unknown.
  unsigned line = 0;  ///< 1-based; 0 if unknown.
  std::string module; ///< Dotted path from the root, for example "visual.transformer.resblocks.0".

  static Loc unknown() { return {}; }
  bool isKnown() const { return !file.empty() || !module.empty(); }
  bool operator==(const Loc &) const = default;
};

/// Returns `transformer.py:918 (visual.transformer)`, for messages. The file is its last path
/// component.
std::string toString(const Loc &loc);

/// One result of a node.
class Value {
public:
  Node *node() const { return node_; }
  unsigned index() const { return index_; }
  const Type &type() const { return type_; }
  void setType(Type type) { type_ = std::move(type); }
  bool isTensor() const { return type_.isTensor(); }
  const TensorType &tensor() const { return type_.tensor(); }
  /// Without the `%`. Unique in its graph; not empty once the node is in a graph.
  const std::string &name() const { return name_; }

  /// The nodes with this value among their arguments, at any depth of a list, the output node
  /// included. In graph order, and each once, however often it uses the value. The next change of
  /// the graph invalidates the range.
  llvm::ArrayRef<Node *> users() const { return users_; }
  bool hasUsers() const { return !users_.empty(); }
  bool hasOneUser() const { return users_.size() == 1; }
  /// Returns true if one node uses the value, once.
  bool hasOneUse() const;

private:
  friend class Node;
  friend class Graph;
  void addUser(Node *node);
  void removeUser(Node *node);

  Node *node_ = nullptr;
  unsigned index_ = 0;
  Type type_;
  std::string name_;
  llvm::SmallVector<Node *, 2> users_; ///< Sorted by Node::isBefore.
};

enum class NodeKind : uint8_t {
  Placeholder, ///< A graph input, named after its result. Its one argument, if any, is the constant
               ///< default of an optional input.
  GetAttr, ///< Reads a parameter, buffer or constant; target is its path from the owning module.
  CallFunction, ///< An op call, with one argument for each argument of the op's schema, in order.
  CallModule,   ///< Calls a method of a submodule; target is `path.method`, arguments match that
                ///< graph's inputs.
  Output,       ///< Ends the graph; its arguments are the graph's outputs. Has no results.
};

class Node : public llvm::ilist_node<Node> {
public:
  NodeKind kind() const { return kind_; }
  bool is(OpKind op) const { return kind_ == NodeKind::CallFunction && op_ == op; }
  /// The op of a CallFunction.
  OpKind op() const {
    assert(kind_ == NodeKind::CallFunction);
    return op_;
  }
  /// GetAttr: the attribute's path. CallModule: `path.method`. `aten.fallback`: the ATen schema.
  /// Otherwise empty.
  const std::string &target() const { return target_; }
  void setTarget(std::string target) { target_ = std::move(target); }
  /// True for a TorchScript in-place op (`aten.relu_`): the result is argument 0, overwritten.
  /// Printed with a trailing underscore; canonicalize removes in-place ops.
  bool isInPlace() const { return inPlace_; }
  void setInPlace(bool inPlace) { inPlace_ = inPlace; }

  const Loc &loc() const { return loc_; }
  Graph *graph() const { return graph_; }
  /// Returns true if this node comes before `other`, a node of the same graph. Takes constant time.
  bool isBefore(const Node &other) const { return position_ < other.position_; }

  /// All arguments, in order. To read one, passes and lowerings use its name: through the op's
  /// class in ir/op_views.h, or through arg() where several ops share the name.
  llvm::ArrayRef<Arg> args() const { return args_; }
  /// Returns the argument with this name in the op's schema. The node must be a CallFunction whose
  /// schema has the name.
  const Arg &arg(llvm::StringRef name) const;
  /// Returns all arguments, with `arg` in place of the one named `name`.
  std::vector<Arg> argsWith(llvm::StringRef name, Arg arg) const;
  /// Placeholder: returns the default of an optional input; null if it has none.
  const Arg *defaultValue() const { return args_.empty() ? nullptr : &args_.front(); }
  /// Calls `fn` for each Value among the arguments, including those in lists, in order.
  void forEachInput(llvm::function_ref<void(Value *)> fn) const;

  /// Replaces all arguments, and updates the users of the old and of the new ones.
  void setArgs(std::vector<Arg> args);
  /// Replaces the argument with this name in the op's schema.
  void setArg(llvm::StringRef name, Arg arg) { setArgs(argsWith(name, std::move(arg))); }
  /// Replaces each use of `from` by this node, at any depth of a list, with `to`.
  void replaceUsesOf(Value *from, Value *to);

  unsigned numResults() const { return static_cast<unsigned>(results_.size()); }
  Value *result(unsigned i = 0) { return &results_[i]; }
  const Value *result(unsigned i = 0) const { return &results_[i]; }
  llvm::MutableArrayRef<Value> results() { return results_; }
  llvm::ArrayRef<Value> results() const { return results_; }

private:
  friend class Graph;
  void addUses();
  void dropUses();

  NodeKind kind_ = NodeKind::CallFunction;
  OpKind op_ = OpKind::Fallback;
  bool inPlace_ = false;
  std::string target_;
  std::vector<Arg> args_;
  std::vector<Value> results_; ///< Not resized after creation, so that `Value *` stays valid.
  Loc loc_;
  Graph *graph_ = nullptr;
  uint64_t position_ = 0; ///< Ascending in graph order, with gaps for nodes to come.
};

/// One method of a module, or the specialization of an entry for one bucket.
class Graph {
public:
  using NodeList = llvm::ilist<Node>;
  using iterator = NodeList::iterator;

  explicit Graph(std::string name) : name_(std::move(name)) {}
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;
  ~Graph();

  const std::string &name() const { return name_; }
  /// The module whose parameters `get_attr` names; null for a standalone graph. Borrowed.
  Module *owner() const { return owner_; }
  void setOwner(Module *owner) { owner_ = owner; }

  iterator begin() { return nodes_.begin(); }
  iterator end() { return nodes_.end(); }
  auto begin() const { return nodes_.begin(); }
  auto end() const { return nodes_.end(); }
  size_t size() const { return nodes_.size(); }
  bool empty() const { return nodes_.empty(); }

  std::vector<Value *> inputs() const;
  /// The output node; null while the graph is being built.
  Node *output() const;
  /// The arguments of the output node, which must exist, without the values of written states.
  llvm::ArrayRef<Arg> outputs() const { return output()->args().drop_back(stateWrites_.size()); }
  /// Names of the outputs, from dict keys or from the model file, one for each output; empty if
  /// they are unnamed.
  const std::vector<std::string> &outputNames() const { return outputNames_; }
  void setOutputNames(std::vector<std::string> names) { outputNames_ = std::move(names); }
  /// Replaces the outputs and their names. The written states stay.
  void setOutputs(std::vector<Arg> outputs, std::vector<std::string> names);

  /// The paths, from the owning module, of the states that the graph writes, each once. Reads of a
  /// state see its value from before the run, wherever they stand.
  const std::vector<std::string> &stateWrites() const { return stateWrites_; }
  /// The new values of these states, in order: the last arguments of the output node.
  llvm::ArrayRef<Arg> stateValues() const {
    return output()->args().take_back(stateWrites_.size());
  }
  /// Gives the state `path` the value `value` when the graph has run. The graph must have an output
  /// node and not write the state yet.
  void addStateWrite(llvm::StringRef path, Value *value);

  /// The creation functions append a node, or insert it before `before` if that is given. A result
  /// is named `name`, made unique, or the next free number.
  Node *placeholder(llvm::StringRef name, Type type, Loc loc);
  Node *getAttr(llvm::StringRef path, Type type, Loc loc, Node *before = nullptr);
  Node *call(OpKind op, std::vector<Arg> args, unsigned numResults, Loc loc, Node *before = nullptr,
             llvm::StringRef name = "");
  Node *callModule(llvm::StringRef target, std::vector<Arg> args, unsigned numResults, Loc loc,
                   Node *before = nullptr);
  Node *createOutput(std::vector<Arg> args, Loc loc);

  /// Renames `value` to `name`, with a suffix if the name is taken.
  void rename(Value *value, llvm::StringRef name);
  /// Replaces every use of `from` with `to`. Takes time in proportion to the users of both.
  void replaceAllUsesWith(Value *from, Value *to);
  /// Replaces the uses of `from` by nodes after `node` with `to`.
  void replaceUsesAfter(const Node &node, Value *from, Value *to);
  /// Erases a node, which must have no users.
  void erase(Node *node);

  /// Returns a deep copy with the same value names and the same owner.
  std::unique_ptr<Graph> clone(std::string name) const;

private:
  /// Takes over a node, names its results, and adds it to the users of its arguments.
  Node *insert(std::unique_ptr<Node> node, unsigned numResults, Node *before, llvm::StringRef name);
  /// Sets the position of a node that was just linked into the list.
  void setPosition(Node &node);
  std::string uniqueName(llvm::StringRef wanted);

  std::string name_;
  Module *owner_ = nullptr;
  NodeList nodes_;
  std::vector<std::string> outputNames_, stateWrites_;
  llvm::StringMap<Value *> names_; ///< Never iterated.
  unsigned nextNumber_ = 0;
};

} // namespace cgc::ir
