// ExportedCall: arguments by name, results by the names of their values.
#include "frontend/exported/exported_call.h"

namespace cgc::exported {

using ir::Arg;

bool ExportedCall::isList(size_t i) const {
  return std::holds_alternative<Argument::List>(node_.inputs[i].argument.value);
}

bool ExportedCall::isUsed(size_t result) const {
  bool isUsed = false;
  node_.outputs[result].forEachName(
      [&](const Argument::Name &name) { isUsed |= importer_.isRead(name.name); });
  return isUsed;
}

bool ExportedCall::isOnHost() const {
  if (node_.outputs.empty())
    return false;
  const auto *name = std::get_if<Argument::Name>(&node_.outputs.front().value);
  return name && !name->isTensor;
}

std::optional<unsigned> ExportedCall::listLength() const {
  if (node_.outputs.size() != 1)
    return std::nullopt;
  const auto *list = std::get_if<Argument::List>(&node_.outputs.front().value);
  return list ? std::optional(static_cast<unsigned>(list->size())) : std::nullopt;
}

Arg ExportedCall::refuse(std::string reason, ir::Cause cause) {
  isBound_ = true;
  return importer_.refuse(node_, std::move(reason), cause);
}

ir::Node *ExportedCall::emitFallback() {
  std::string schema = op_.name + (op_.overload.empty() ? "" : "." + op_.overload) + "(";
  Arg::List args;
  for (const NamedArgument &input : node_.inputs) {
    Result<Arg> arg = importer_.arg(input.argument);
    args.push_back(arg.isOk() ? *std::move(arg) : Arg());
    schema += (args.size() == 1 ? "" : ", ") + input.name;
  }
  ir::Node *fallback =
      graph().call(ir::OpKind::Fallback, {Arg(std::move(args))}, numValues(node_), loc());
  fallback->setTarget(schema + ")");
  isBound_ = true;
  std::vector<Arg> results;
  for (ir::Value &result : fallback->results())
    results.push_back(&result);
  importer_.bind(node_, results);
  return fallback;
}

unsigned numValues(const Node &node) {
  unsigned count = 0;
  for (const Argument &output : node.outputs)
    output.forEachName([&](const Argument::Name &) { ++count; });
  return count;
}

} // namespace cgc::exported
