// Graph, Node and Value: creation, naming, mutation, users, cloning.
#include "ir/graph.h"

#include "ir/op_def.h"
#include "runtime/base/check.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

namespace cgc::ir {
namespace {

constexpr uint64_t kSpacing = uint64_t(1) << 32; ///< Between the positions of two nodes.

bool comesBefore(const Node *a, const Node *b) {
  return a->isBefore(*b);
}

} // namespace

std::string toString(const Loc &loc) {
  std::string text;
  if (!loc.file.empty())
    text = loc.file.substr(loc.file.find_last_of('/') + 1) + ":" + std::to_string(loc.line);
  if (!loc.module.empty())
    text += (text.empty() ? "(" : " (") + loc.module + ")";
  return text;
}

bool Value::hasOneUse() const {
  if (!hasOneUser())
    return false;
  unsigned uses = 0;
  users_.front()->forEachInput([&](const Value *value) { uses += value == this; });
  return uses == 1;
}

void Value::addUser(Node *node) {
  auto at = llvm::lower_bound(users_, node, comesBefore);
  if (at == users_.end() || *at != node)
    users_.insert(at, node);
}

void Value::removeUser(Node *node) {
  auto at = llvm::lower_bound(users_, node, comesBefore);
  if (at != users_.end() && *at == node)
    users_.erase(at);
}

const Arg &Node::arg(llvm::StringRef name) const {
  auto index = opSchema(op()).find(name);
  CGC_CHECK(index && "the op's schema has no such argument");
  return args_[*index];
}

std::vector<Arg> Node::argsWith(llvm::StringRef name, Arg arg) const {
  auto index = opSchema(op()).find(name);
  CGC_CHECK(index && "the op's schema has no such argument");
  std::vector<Arg> args = args_;
  args[*index] = std::move(arg);
  return args;
}

void Node::forEachInput(llvm::function_ref<void(Value *)> fn) const {
  for (const Arg &arg : args_)
    arg.forEachValue(fn);
}

void Node::addUses() {
  forEachInput([this](Value *value) { value->addUser(this); });
}

void Node::dropUses() {
  forEachInput([this](Value *value) { value->removeUser(this); });
}

void Node::setArgs(std::vector<Arg> args) {
  dropUses();
  args_ = std::move(args);
  addUses();
}

void Node::replaceUsesOf(Value *from, Value *to) {
  dropUses();
  for (Arg &arg : args_)
    arg.mapValues([&](Value *value) { return Arg(value == from ? to : value); });
  addUses();
}

Graph::~Graph() = default;

std::vector<Value *> Graph::inputs() const {
  std::vector<Value *> inputs;
  for (const Node &node : nodes_) {
    if (node.kind() != NodeKind::Placeholder)
      break;
    inputs.push_back(const_cast<Node &>(node).result());
  }
  return inputs;
}

Node *Graph::output() const {
  if (nodes_.empty() || nodes_.back().kind() != NodeKind::Output)
    return nullptr;
  return const_cast<Node *>(&nodes_.back());
}

std::string Graph::uniqueName(llvm::StringRef wanted) {
  if (wanted.empty()) {
    std::string name;
    do
      name = std::to_string(nextNumber_++);
    while (names_.count(name));
    return name;
  }
  if (!names_.count(wanted))
    return wanted.str();
  for (unsigned suffix = 1;; ++suffix) {
    std::string name = (wanted + "_" + llvm::Twine(suffix)).str();
    if (!names_.count(name))
      return name;
  }
}

Node *Graph::insert(std::unique_ptr<Node> owned, unsigned numResults, Node *before,
                    llvm::StringRef name) {
  Node *node = owned.release();
  node->graph_ = this;
  node->results_ = std::vector<Value>(numResults);
  for (unsigned i = 0; i < numResults; ++i) {
    Value &value = node->results_[i];
    value.node_ = node;
    value.index_ = i;
    value.name_ = uniqueName(name);
    names_[value.name_] = &value;
  }
  nodes_.insert(before ? before->getIterator() : nodes_.end(), node);
  setPosition(*node);
  node->addUses();
  return node;
}

void Graph::setPosition(Node &node) {
  const iterator at = node.getIterator(), next = std::next(at);
  const uint64_t low = at == nodes_.begin() ? 0 : std::prev(at)->position_;
  if (next == nodes_.end()) {
    node.position_ = low + kSpacing;
  } else if (next->position_ - low > 1) {
    node.position_ = low + (next->position_ - low) / 2;
  } else { // The gap is used up. New positions keep the order, and with it the users sorted.
    uint64_t position = 0;
    for (Node &each : nodes_)
      each.position_ = position += kSpacing;
  }
}

Node *Graph::placeholder(llvm::StringRef name, Type type, Loc loc) {
  auto node = std::make_unique<Node>();
  node->kind_ = NodeKind::Placeholder;
  node->loc_ = std::move(loc);
  Node *before = nullptr;
  for (Node &existing : nodes_)
    if (existing.kind() != NodeKind::Placeholder) {
      before = &existing;
      break;
    }
  Node *inserted = insert(std::move(node), 1, before, name);
  inserted->result()->setType(std::move(type));
  return inserted;
}

Node *Graph::getAttr(llvm::StringRef path, Type type, Loc loc, Node *before) {
  auto node = std::make_unique<Node>();
  node->kind_ = NodeKind::GetAttr;
  node->target_ = path.str();
  node->loc_ = std::move(loc);
  Node *inserted = insert(std::move(node), 1, before, "");
  inserted->result()->setType(std::move(type));
  return inserted;
}

Node *Graph::call(OpKind op, std::vector<Arg> args, unsigned numResults, Loc loc, Node *before,
                  llvm::StringRef name) {
  auto node = std::make_unique<Node>();
  node->kind_ = NodeKind::CallFunction;
  node->op_ = op;
  node->args_ = std::move(args);
  node->loc_ = std::move(loc);
  return insert(std::move(node), numResults, before, name);
}

Node *Graph::callModule(llvm::StringRef target, std::vector<Arg> args, unsigned numResults, Loc loc,
                        Node *before) {
  auto node = std::make_unique<Node>();
  node->kind_ = NodeKind::CallModule;
  node->target_ = target.str();
  node->args_ = std::move(args);
  node->loc_ = std::move(loc);
  return insert(std::move(node), numResults, before, "");
}

Node *Graph::createOutput(std::vector<Arg> args, Loc loc) {
  CGC_CHECK(!output() && "a graph has one output node");
  auto node = std::make_unique<Node>();
  node->kind_ = NodeKind::Output;
  node->args_ = std::move(args);
  node->loc_ = std::move(loc);
  return insert(std::move(node), 0, nullptr, "");
}

void Graph::setOutputs(std::vector<Arg> outputs, std::vector<std::string> names) {
  llvm::append_range(outputs, stateValues());
  output()->setArgs(std::move(outputs));
  outputNames_ = std::move(names);
}

void Graph::addStateWrite(llvm::StringRef path, Value *value) {
  CGC_CHECK(!llvm::is_contained(stateWrites_, path) && "a state is written once");
  std::vector<Arg> args = output()->args();
  args.emplace_back(value);
  output()->setArgs(std::move(args));
  stateWrites_.push_back(path.str());
}

void Graph::rename(Value *value, llvm::StringRef name) {
  CGC_CHECK(value->node()->graph() == this && !name.empty());
  if (value->name_ == name)
    return;
  names_.erase(value->name_);
  value->name_ = uniqueName(name);
  names_[value->name_] = value;
}

void Graph::replaceAllUsesWith(Value *from, Value *to) {
  CGC_CHECK(from != to && "replacing a value by itself");
  const llvm::SmallVector<Node *, 2> users = from->users_; // Shrinks as uses are replaced.
  for (Node *user : users)
    user->replaceUsesOf(from, to);
}

void Graph::replaceUsesAfter(const Node &node, Value *from, Value *to) {
  const llvm::SmallVector<Node *, 2> users = from->users_;
  for (Node *user : users)
    if (node.isBefore(*user))
      user->replaceUsesOf(from, to);
}

void Graph::erase(Node *node) {
  for (Value &value : node->results_) {
    CGC_CHECK(!value.hasUsers() && "erasing a node that has users");
    names_.erase(value.name_);
  }
  node->dropUses();
  nodes_.erase(node->getIterator());
}

std::unique_ptr<Graph> Graph::clone(std::string name) const {
  auto copy = std::make_unique<Graph>(std::move(name));
  copy->owner_ = owner_;
  copy->outputNames_ = outputNames_;
  copy->stateWrites_ = stateWrites_;
  llvm::DenseMap<const Value *, Value *> map; // Looked up, never iterated.
  for (const Node &node : nodes_) {
    auto fresh = std::make_unique<Node>();
    fresh->kind_ = node.kind_;
    fresh->op_ = node.op_;
    fresh->inPlace_ = node.inPlace_;
    fresh->target_ = node.target_;
    fresh->args_ = node.args_;
    fresh->loc_ = node.loc_;
    for (Arg &arg : fresh->args_)
      arg.mapValues([&](Value *value) { return Arg(map.lookup(value)); });
    // Names are unique in the original, so each is free here. The provisional name collides with
    // none of them.
    Node *inserted = copy->insert(std::move(fresh), node.numResults(), nullptr, "<clone>");
    for (unsigned i = 0; i < node.numResults(); ++i) {
      inserted->result(i)->setType(node.result(i)->type());
      copy->rename(inserted->result(i), node.result(i)->name());
      map[node.result(i)] = inserted->result(i);
    }
  }
  copy->nextNumber_ = nextNumber_;
  return copy;
}

} // namespace cgc::ir
