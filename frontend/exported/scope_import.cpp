// ScopeImporter: nodes, calls of modules below, inputs and outputs of a scope.
#include "frontend/exported/scope_import.h"

#include "frontend/exported/exported_call.h"
#include "frontend/exported/stack_trace.h"
#include "frontend/ops/op_import.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace cgc::exported {

using ir::Arg;
using ir::OpKind;

namespace {

/// Checks that torch.export writes down beside the model's own ops. The types of a bucket satisfy
/// them, or the op that they guard refuses them.
constexpr llvm::StringRef kChecks[] = {
    "torch.ops.aten._assert_tensor_metadata.default",
    "torch.ops.aten.sym_constrain_range.default",
    "torch.ops.aten.sym_constrain_range_for_size.default",
};
constexpr llvm::StringRef kControlFlow[] = {
    "torch.ops.higher_order.cond",
    "torch.ops.higher_order.while_loop",
    "torch.ops.higher_order.map_impl",
    "torch.ops.higher_order.scan",
};
constexpr llvm::StringRef kAssertion = "torch.ops.aten._assert_scalar.default";

/// Returns `path` seen from `module`; none if it is not below.
std::optional<llvm::StringRef> below(llvm::StringRef path, llvm::StringRef module) {
  if (module.empty())
    return path;
  if (path.consume_front(module) && path.consume_front("."))
    return path;
  return std::nullopt;
}

/// Returns a name for IR text; empty if there is none to be made of `name`.
std::string plainName(llvm::StringRef name) {
  std::string plain = name.str();
  for (char &c : plain)
    if (!llvm::isAlnum(c))
      c = '_';
  return plain.empty() || llvm::isDigit(plain[0]) ? "" : plain;
}

} // namespace

void ScopeImporter::importRoot() {
  for (const InputSpec &input : state_.program.inputs)
    if (const auto *name = std::get_if<Argument::Name>(&input.argument.value);
        name && input.kind == InputSpec::Kind::User)
      addInput(name->name, input.name);
  importNodes();
  createOutput();
}

void ScopeImporter::importCallee() {
  for (const std::string &name : argumentsOf(scope_))
    addInput(name, name);
  importNodes();
  std::vector<Arg> outputs;
  for (const std::string &name : state_.uses.outputsOf(state_.program, scope_))
    outputs.push_back(lookup(name));
  graph_.createOutput(std::move(outputs), locOf(state_.program.nodes[scope_.end - 1]));
}

void ScopeImporter::importNodes() {
  auto child = scope_.children.begin();
  for (size_t i = scope_.begin; i < scope_.end;) {
    if (child == scope_.children.end() || child->begin != i) {
      importNode(state_.program.nodes[i++]);
      continue;
    }
    // What only changes buffers stays with the caller.
    if (state_.uses.outputsOf(state_.program, *child).empty())
      for (size_t inner = child->begin; inner < child->end; ++inner)
        importNode(state_.program.nodes[inner]);
    else
      importCall(*child);
    i = child++->end;
  }
}

void ScopeImporter::importNode(const Node &node) {
  if (llvm::is_contained(kChecks, node.target))
    return;
  // A region of a branch that the op opens must not be the first to read an argument.
  for (const NamedArgument &input : node.inputs)
    input.argument.forEachName([&](const Argument::Name &name) { lookup(name.name); });
  if (node.target == kAssertion)
    return importAssertion(node);
  if (llvm::is_contained(kControlFlow, node.target)) {
    refuse(node, ir::explain("cgc cannot compile " + node.target, ir::Cause::DataFlow),
           ir::Cause::DataFlow);
    return;
  }
  importOp(node);
}

void ScopeImporter::importOp(const Node &node) {
  ExportedCall call(*this, node);
  if (node.outputs.empty()) {
    call.emitFallback();
    return;
  }
  const frontend::OpImporter::Results results = frontend::OpImporter(call).import();
  if (call.isBound())
    return;
  std::vector<Arg> args;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const Arg result = i < results.size() ? results[i] : Arg();
    if (std::holds_alternative<Argument::Name>(node.outputs[i].value))
      args.push_back(result);
    else if (result.isList())
      args.insert(args.end(), result.list().begin(), result.list().end());
  }
  bind(node, args);
}

void ScopeImporter::importAssertion(const Node &node) {
  if (node.inputs.empty())
    return;
  const Result<Arg> condition = arg(node.inputs[0].argument);
  if (!condition.isOk() || *condition == Arg(true))
    return;
  const auto *text =
      node.inputs.size() > 1 ? std::get_if<Arg>(&node.inputs[1].argument.value) : nullptr;
  const bool hasText = text && text->is<std::string>();
  const ir::Loc loc = locOf(node);
  graph_.call(OpKind::PrimIf, {*condition}, 0, loc);
  graph_.call(OpKind::PrimElse, {}, 0, loc);
  graph_.call(OpKind::PrimRaise,
              {hasText ? *text
                       : Arg("a condition of the exported program does "
                             "not hold for these sizes")},
              0, loc);
  graph_.call(OpKind::PrimEndIf, {Arg(Arg::List()), Arg(Arg::List())}, 0, loc);
}

void ScopeImporter::importCall(const Scope &scope) {
  const std::optional<llvm::StringRef> relative = below(scope.path, path_);
  ir::Module &callee = *module_.resolve((*relative + ".forward").str()).first;
  std::string method = "forward";
  for (unsigned i = 1; callee.findGraph(method); ++i)
    method = "forward_" + std::to_string(i);
  ir::Graph &graph = *callee.addGraph(std::make_unique<ir::Graph>(method));
  const ir::Loc loc = locOf(state_.program.nodes[scope.begin]);
  ScopeImporter(state_, scope, callee, graph).importCallee();
  std::vector<Arg> args;
  for (const std::string &name : argumentsOf(scope))
    args.push_back(lookup(name));
  const std::vector<std::string> outputs = state_.uses.outputsOf(state_.program, scope);
  ir::Node *call = graph_.callModule((*relative + "." + method).str(), std::move(args),
                                     static_cast<unsigned>(outputs.size()), loc);
  for (auto [name, result] : llvm::zip_equal(outputs, call->results()))
    bindName(name, &result);
}

std::vector<std::string> ScopeImporter::argumentsOf(const Scope &scope) const {
  std::vector<std::string> names = state_.uses.inputsOf(state_.program, scope);
  llvm::erase_if(names, [&](const std::string &name) {
    const auto weight = state_.weights.find(name);
    return weight != state_.weights.end() && below(weight->second.path, scope.path);
  });
  return names;
}

void ScopeImporter::addInput(llvm::StringRef value, llvm::StringRef name) {
  args_[value] = graph_.placeholder(plainName(name), {}, {"", 0, path_})->result();
}

void ScopeImporter::createOutput() {
  size_t next = 0;
  Arg output = outputOf(state_.program.outputTree, next);
  const ir::Loc loc{state_.lastLine.file, state_.lastLine.line, path_};
  if (output.isList())
    output = graph_.call(OpKind::PrimList, {std::move(output)}, 1, loc)->result();
  graph_.createOutput({std::move(output)}, loc);
}

Arg ScopeImporter::outputOf(const ValueTree &tree, size_t &next) {
  if (tree.isLeaf) {
    while (state_.program.outputs[next].kind != OutputSpec::Kind::User)
      ++next;
    Result<Arg> output = arg(state_.program.outputs[next++].argument);
    return output.isOk() ? *std::move(output) : Arg();
  }
  Arg::List keys, values;
  for (const ValueTree &element : tree.elements) {
    Arg value = outputOf(element, next);
    if (value.isNone())
      continue;
    if (!tree.keys.empty())
      keys.push_back(Arg(tree.keys[static_cast<size_t>(&element - tree.elements.data())]));
    values.push_back(std::move(value));
  }
  if (tree.keys.empty())
    return Arg(std::move(values));
  return graph_
      .call(OpKind::PrimDict, {Arg(std::move(keys)), Arg(std::move(values))}, 1,
            {state_.lastLine.file, state_.lastLine.line, path_})
      ->result();
}

ir::Loc ScopeImporter::locOf(const Node &node) {
  if (const std::optional<ir::Loc> line = userLine(node.stackTrace))
    state_.lastLine = *line;
  return {state_.lastLine.file, state_.lastLine.line, path_};
}

Result<Arg> ScopeImporter::arg(const Argument &argument) {
  if (const auto *constant = std::get_if<Arg>(&argument.value))
    return *constant;
  if (const auto *name = std::get_if<Argument::Name>(&argument.value))
    return lookup(name->name);
  if (const auto *refused = std::get_if<Argument::Refused>(&argument.value))
    return Status(Code::Unsupported, refused->reason);
  Arg::List list;
  for (const Argument &element : std::get<Argument::List>(argument.value)) {
    CGC_ASSIGN_OR_RETURN(Arg each, arg(element));
    list.push_back(std::move(each));
  }
  return Arg(std::move(list));
}

Arg ScopeImporter::lookup(llvm::StringRef name) {
  if (const auto found = args_.find(name); found != args_.end())
    return found->second;
  // ValueUses has checked that the name is that of an input, so it is one of a weight.
  Arg value = readWeight(state_.weights.find(name)->second);
  args_[name] = value;
  return value;
}

Arg ScopeImporter::readWeight(const WeightInput &weight) {
  const ir::Loc loc{state_.lastLine.file, state_.lastLine.line, path_};
  if (!weight.refusal.empty())
    return graph_
        .call(OpKind::PrimRefused,
              {Arg("'" + weight.path + "' is " + weight.refusal +
                   ", which cgc does not support; convert it before the export"),
               Arg("")},
              1, loc)
        ->result();
  return graph_.getAttr(*below(weight.path, path_), weight.type, loc)->result();
}

void ScopeImporter::bindName(llvm::StringRef name, Arg arg) {
  if (const std::string plain = plainName(name);
      !plain.empty() && arg.isValue() && llvm::isDigit(arg.value()->name()[0]))
    graph_.rename(arg.value(), plain);
  args_[name] = std::move(arg);
}

void ScopeImporter::bind(const Node &node, llvm::ArrayRef<Arg> args) {
  size_t next = 0;
  for (const Argument &output : node.outputs)
    output.forEachName([&](const Argument::Name &name) {
      bindName(name.name, next < args.size() ? args[next++] : Arg());
    });
}

Arg ScopeImporter::refuse(const Node &node, std::string reason, ir::Cause cause) {
  ir::Node *refused =
      graph_.call(OpKind::PrimRefused, {Arg(std::move(reason)), Arg(ir::textOf(cause).id.str())},
                  numValues(node), locOf(node));
  std::vector<Arg> results;
  for (ir::Value &result : refused->results())
    results.push_back(&result);
  bind(node, results);
  return results.empty() ? Arg() : results.front();
}

} // namespace cgc::exported
