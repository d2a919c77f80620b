// Printer: modules, graphs and nodes as IR text (docs/ir.md).
#include "ir/op_def.h"
#include "ir/text/lexer.h"
#include "ir/text/text.h"

#include "llvm/ADT/StringExtras.h"

#include <charconv>
#include <cmath>

namespace cgc::ir {
namespace {

/// Returns the shortest digits that parse back to the same double, always with a point or an
/// exponent.
std::string floatText(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  char buffer[32];
  auto end = std::to_chars(std::begin(buffer), std::end(buffer), value).ptr;
  std::string text(buffer, end);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string nameText(llvm::StringRef name) {
  return isBareName(name) ? name.str() : quoted(name);
}
std::string keyText(llvm::StringRef key) {
  return isName(key) ? key.str() : quoted(key);
}

struct ArgText {
  std::string operator()(Arg::None) const { return "none"; }
  std::string operator()(const Value *value) const { return "%" + nameText(value->name()); }
  std::string operator()(bool b) const { return b ? "true" : "false"; }
  std::string operator()(int64_t i) const { return std::to_string(i); }
  std::string operator()(double d) const { return floatText(d); }
  std::string operator()(const std::string &s) const { return quoted(s); }
  std::string operator()(DType dtype) const { return std::string(dtypeName(dtype)); }
  std::string operator()(DeviceKind device) const { return std::string(deviceName(device)); }
  std::string operator()(const Arg::List &list) const;
};

// Does not use llvm::join, which maps each element twice and so doubles the work at each nesting
// level.
std::string joinArgs(llvm::ArrayRef<Arg> args) {
  std::string text;
  llvm::ListSeparator comma;
  for (const Arg &arg : args)
    (text += llvm::StringRef(comma)) += argText(arg);
  return text;
}

std::string ArgText::operator()(const Arg::List &list) const {
  return "[" + joinArgs(list) + "]";
}

/// Prints one module or graph; `indent_` is the indentation of the current line.
class Printer {
public:
  Printer(llvm::raw_ostream &os, PrintOptions options) : os_(os), options_(options) {}

  void printModule(const Module &module);
  void printGraph(const Graph &graph);
  void printNode(const Node &node);

private:
  llvm::raw_ostream &line() { return os_.indent(indent_); }
  void printInputs(const Graph &graph);
  void printOutputs(const Graph &graph);
  void printCall(const Node &node);
  void printOutput(const Node &node);
  void printLoc(const Loc &loc);

  llvm::raw_ostream &os_;
  PrintOptions options_;
  unsigned indent_ = 0;
};

llvm::StringRef keyword(Parameter::Kind kind) {
  switch (kind) {
  case Parameter::Kind::Parameter:
    return "param";
  case Parameter::Kind::Buffer:
    return "buffer";
  case Parameter::Kind::Constant:
    return "const";
  case Parameter::Kind::State:
    return "state";
  }
  llvm_unreachable("covered switch");
}

void Printer::printModule(const Module &module) {
  line() << "module @" << nameText(module.name());
  if (!module.className().empty())
    os_ << " class=" << quoted(module.className());
  os_ << " {\n";
  indent_ += 2;
  for (const Parameter &parameter : module.parameters()) {
    line() << keyword(parameter.kind) << " @" << nameText(parameter.name);
    if (parameter.kind == Parameter::Kind::State && parameter.role != StateRole::Parameter)
      os_ << " role=" << quoted(llvm::StringRef(stateRoleName(parameter.role)));
    if (parameter.shard)
      os_ << " shard=" << *parameter.shard;
    os_ << " : " << toString(parameter.type) << "\n";
  }
  for (const Attribute &attribute : module.attributes())
    line() << "attr " << keyText(attribute.name) << " = " << argText(attribute.value) << "\n";
  for (const auto &submodule : module.submodules())
    printModule(*submodule);
  for (const auto &graph : module.graphs())
    printGraph(*graph);
  indent_ -= 2;
  line() << "}\n";
}

void Printer::printLoc(const Loc &loc) {
  if (!options_.locations || loc == Loc::unknown())
    return;
  os_ << " loc(" << quoted(loc.file) << ":" << loc.line;
  if (!loc.module.empty())
    os_ << " " << quoted(loc.module);
  os_ << ")";
}

void Printer::printInputs(const Graph &graph) {
  llvm::ListSeparator comma;
  for (const Value *input : graph.inputs()) {
    os_ << comma << "%" << nameText(input->name()) << ": " << toString(input->type());
    if (const Arg *value = input->node()->defaultValue())
      os_ << " = " << argText(*value);
    printLoc(input->node()->loc());
  }
}

void Printer::printOutputs(const Graph &graph) {
  const Node *output = graph.output();
  if (!output)
    return;
  const auto &names = graph.outputNames();
  bool single = graph.outputs().size() == 1 && names.empty();
  os_ << (single ? " -> " : " -> (");
  llvm::ListSeparator comma;
  for (const auto &[i, arg] : llvm::enumerate(graph.outputs())) {
    os_ << comma;
    if (i < names.size())
      os_ << keyText(names[i]) << ": ";
    os_ << (arg.isValue() ? toString(arg.value()->type()) : "dynamic");
  }
  if (!single)
    os_ << ")";
}

void Printer::printGraph(const Graph &graph) {
  line() << "graph @" << nameText(graph.name()) << "(";
  printInputs(graph);
  os_ << ")";
  printOutputs(graph);
  os_ << " {\n";
  indent_ += 2;
  size_t numInputs = graph.inputs().size();
  for (const Node &node : llvm::drop_begin(graph, numInputs)) {
    line();
    printNode(node);
    os_ << "\n";
  }
  indent_ -= 2;
  line() << "}\n";
}

void Printer::printCall(const Node &node) {
  os_ << opName(node.op()) << (node.isInPlace() ? "_" : "");
  if (node.is(OpKind::Fallback)) {
    os_ << " " << quoted(node.target()) << " ";
    bool wellFormed = node.args().size() == 1 && node.args().front().isList();
    os_ << "(" << joinArgs(wellFormed ? llvm::ArrayRef(node.args().front().list()) : node.args())
        << ")";
    return;
  }
  const Schema &schema = opSchema(node.op());
  if (node.args().size() != schema.args.size()) {
    os_ << "(" << joinArgs(node.args()) << ")"; // Malformed; only messages print such a node.
    return;
  }
  std::vector<std::string> positional, named;
  size_t needed = 0; // The positional arguments up to the last one that differs from its default.
  for (const auto &[expected, arg] : llvm::zip(schema.args, node.args())) {
    std::string text = argText(arg);
    bool isDefault = expected.defaultValue && argText(*expected.defaultValue) == text;
    if (isPositional(expected)) {
      positional.push_back(std::move(text));
      if (!isDefault)
        needed = positional.size();
    } else if (!isDefault) {
      named.push_back(expected.name + "=" + text);
    }
  }
  positional.resize(needed);
  os_ << "(" << llvm::join(positional, ", ") << ")";
  if (!named.empty())
    os_ << " {" << llvm::join(named, ", ") << "}";
}

void Printer::printOutput(const Node &node) {
  const std::vector<std::string> &states = node.graph()->stateWrites();
  const size_t numOutputs = node.args().size() - states.size();
  os_ << "output";
  for (const auto &[i, arg] : llvm::enumerate(node.args())) {
    os_ << (i == 0 ? " " : ", ");
    if (i >= numOutputs)
      os_ << "state @" << nameText(states[i - numOutputs]) << " = ";
    os_ << argText(arg);
  }
}

void Printer::printNode(const Node &node) {
  llvm::ListSeparator comma;
  for (const Value &result : node.results())
    os_ << comma << "%" << nameText(result.name());
  if (node.numResults() > 0)
    os_ << " = ";
  switch (node.kind()) {
  case NodeKind::Placeholder:
    os_ << "placeholder"; // Only in messages: the graph's header prints placeholders.
    break;
  case NodeKind::GetAttr:
    os_ << "get_attr @" << nameText(node.target());
    break;
  case NodeKind::CallFunction:
    printCall(node);
    break;
  case NodeKind::CallModule:
    os_ << "call_module @" << nameText(node.target()) << "(" << joinArgs(node.args()) << ")";
    break;
  case NodeKind::Output:
    printOutput(node);
    break;
  }
  llvm::ListSeparator typeComma;
  if (node.numResults() > 0)
    os_ << " : ";
  for (const Value &result : node.results())
    os_ << typeComma << toString(result.type());
  printLoc(node.loc());
}

template <class T> std::string printed(const T &object, PrintOptions options) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os, object, options);
  return text;
}

} // namespace

bool isPositional(const SchemaArg &arg) {
  return arg.kind == ArgKind::Tensor || arg.kind == ArgKind::TensorOrNumber ||
         arg.kind == ArgKind::Any;
}

std::string argText(const Arg &arg) {
  return arg.visit(ArgText{});
}

void print(llvm::raw_ostream &os, const Module &module, PrintOptions options) {
  Printer(os, options).printModule(module);
}

void print(llvm::raw_ostream &os, const Graph &graph, PrintOptions options) {
  Printer(os, options).printGraph(graph);
}

std::string toString(const Module &module, PrintOptions options) {
  return printed(module, options);
}

std::string toString(const Graph &graph, PrintOptions options) {
  return printed(graph, options);
}

std::string toString(const Node &node) {
  std::string text;
  llvm::raw_string_ostream os(text);
  Printer(os, {.locations = false}).printNode(node);
  return text;
}

} // namespace cgc::ir
