// NodeParser: nodes, the stacks of modules that they ran in, and parts under another mode.
#include "frontend/exported/nodes.h"

#include "llvm/ADT/StringRef.h"

namespace cgc::exported {
namespace {

constexpr const char *kSetGrad = "torch.ops.higher_order.wrap_with_set_grad_enabled";
constexpr const char *kAutocast = "torch.ops.higher_order.wrap_with_autocast";
constexpr size_t kMaxModules = 64; ///< Bounds the modules around a node.
constexpr size_t kMaxPrefix = 256; ///< Bounds the name of a value in parts of parts.

/// Returns the calls of "key,path,package.Class;…".
std::vector<ModuleCall> parseModules(llvm::StringRef text) {
  std::vector<ModuleCall> calls;
  llvm::SmallVector<llvm::StringRef> entries;
  text.split(entries, ';', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef entry : entries) {
    if (entry.starts_with("_empty_nn_module_stack")) // Of a node that torch added.
      continue;
    const auto [key, rest] = entry.split(',');
    const auto [path, type] = rest.rsplit(',');
    const llvm::StringRef className = type.rsplit('.').second;
    calls.push_back({key.str(), path.str(), (className.empty() ? type : className).str()});
  }
  if (calls.size() > kMaxModules)
    throw Malformed{"the modules are nested too deep"};
  return calls;
}

/// The text of a node's metadata; empty if it has none.
std::string metadata(const Json &node, const char *key) {
  const Json &all = node.at("metadata");
  const auto found = all.find(key);
  return found == all.end() || !found->is_string() ? "" : found->get<std::string>();
}

Node parseNode(const Json &json) {
  Node node;
  node.target = json.at("target").get<std::string>();
  for (const Json &input : json.at("inputs"))
    node.inputs.push_back({input.at("name").get<std::string>(), parseArgument(input.at("arg"))});
  for (const Json &output : json.at("outputs"))
    node.outputs.push_back(parseArgument(output));
  node.modules = parseModules(metadata(json, "nn_module_stack"));
  node.stackTrace = metadata(json, "stack_trace");
  return node;
}

/// Returns the name of an operand or a result of a part.
std::string nameOf(const Json &json) {
  const Argument argument = parseArgument(json);
  const auto *name = std::get_if<Argument::Name>(&argument.value);
  if (!name)
    throw Malformed{"an operand of a part under another mode has no name"};
  return name->name;
}

/// Throws for a list: parts of parts could make a short file name very many values.
Argument parseOperand(const Json &json) {
  Argument operand = parseArgument(json);
  if (std::holds_alternative<Argument::List>(operand.value))
    throw Malformed{"an operand of a part under another mode is a list"};
  return operand;
}

/// The call of a part of the graph under another mode. Its operands follow the part.
struct PartCall {
  size_t part;       ///< The input that is the part.
  bool hasGradients; ///< Whether gradients flow through the part.
};

/// Nothing for other nodes, among them a part under autocast, which would need its casts.
std::optional<PartCall> partCall(const Json &node) {
  const auto flag = [&](size_t i) {
    return node.at("inputs").at(i).at("arg").at("as_bool").get<bool>();
  };
  if (node.at("target") == kSetGrad)
    return PartCall{1, flag(0)};
  if (node.at("target") == kAutocast && !flag(2))
    return PartCall{4, true};
  return std::nullopt;
}

} // namespace

NodeParser::Names NodeParser::parse(const Json &graph, const std::string &prefix, Names names) {
  if (prefix.size() > kMaxPrefix)
    throw Malformed{"parts under other modes are nested too deep"};
  for (const Json &json : graph.at("nodes")) {
    if (const std::optional<PartCall> call = partCall(json)) {
      parsePart(json, call->part, call->hasGradients, prefix, names);
      continue;
    }
    Node node = parseNode(json);
    for (NamedArgument &input : node.inputs)
      input.argument = resolve(input.argument, prefix, names);
    for (Argument &output : node.outputs)
      output = resolve(output, prefix, names);
    nodes_.push_back(std::move(node));
  }
  return names;
}

void NodeParser::parsePart(const Json &call, size_t part, bool hasGradients,
                           const std::string &prefix, Names &names) {
  const Json &inputs = call.at("inputs"), &outputs = call.at("outputs");
  const Json &graph = inputs.at(part).at("arg").at("as_graph").at("graph");
  const Json &operands = graph.at("inputs"), &results = graph.at("outputs");
  if (operands.size() + part + 1 != inputs.size() || results.size() != outputs.size())
    throw Malformed{"a part under another mode has other operands than its call"};
  Names inner;
  for (size_t i = 0; i < operands.size(); ++i)
    inner[nameOf(operands[i])] =
        resolve(parseOperand(inputs[part + 1 + i].at("arg")), prefix, names);
  const std::string innerPrefix = prefix + "part" + std::to_string(numParts_++) + ".";
  inner = parse(graph, innerPrefix, std::move(inner));
  for (size_t i = 0; i < results.size(); ++i) {
    Argument result = resolve(parseOperand(results[i]), innerPrefix, inner);
    const auto *name = std::get_if<Argument::Name>(&result.value);
    if (hasGradients || !name || !name->isTensor) {
      names[nameOf(outputs[i])] = std::move(result);
      continue;
    }
    Node detach = parseNode(call); // For its modules and lines.
    detach.target = "torch.ops.aten.detach.default";
    detach.inputs.assign({{"self", std::move(result)}});
    detach.outputs.assign({resolve(parseArgument(outputs[i]), prefix, names)});
    nodes_.push_back(std::move(detach));
  }
}

Argument NodeParser::resolve(const Argument &argument, const std::string &prefix,
                             const Names &names) {
  if (const auto *name = std::get_if<Argument::Name>(&argument.value)) {
    const auto known = names.find(name->name);
    return known != names.end() ? known->second
                                : Argument{Argument::Name{prefix + name->name, name->isTensor}};
  }
  const auto *list = std::get_if<Argument::List>(&argument.value);
  if (!list)
    return argument;
  Argument::List resolved;
  for (const Argument &element : *list)
    resolved.push_back(resolve(element, prefix, names));
  return {std::move(resolved)};
}

} // namespace cgc::exported
