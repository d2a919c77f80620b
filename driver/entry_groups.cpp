// Entry groups: builds methods that call other methods of the root; `inline` resolves the calls.
#include "driver/entry_groups.h"

#include "driver/buckets.h"
#include "ir/text/lexer.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

#include <fmt/format.h>

#include <algorithm>

namespace cgc::driver {

namespace {

/// The names of a method's outputs in a group.
std::vector<std::string> outputNamesOf(const ir::Graph &method) {
  if (!method.outputNames().empty())
    return method.outputNames();
  const size_t count = method.outputs().size();
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i)
    names.push_back(count == 1 ? method.name() : fmt::format("{}.{}", method.name(), i));
  return names;
}

/// The names of the inputs or outputs of all members, as [member][index], made different where two
/// are equal. Usage, naming one, if that leaves two equal names.
Status makeDifferent(const std::vector<const ir::Graph *> &members, const char *separator,
                     std::vector<std::vector<std::string>> &names) {
  llvm::StringMap<unsigned> counts;
  for (const auto &list : names)
    for (const std::string &name : list)
      ++counts[name];
  llvm::StringMap<unsigned> result;
  for (auto [member, list] : llvm::zip_equal(members, names))
    for (std::string &name : list) {
      if (counts[name] > 1)
        name = member->name() + separator + name;
      if (++result[name] > 1)
        return {Code::Usage, fmt::format("two inputs or outputs would be called '{}'", name)};
    }
  return Status::ok();
}

Result<std::vector<const ir::Graph *>> membersOf(const ir::Module &root, const EntryGroup &group) {
  if (!ir::isName(group.name))
    return Status(Code::Usage,
                  "its name has to be letters, digits, '_' and '.', and to begin with a letter");
  if (root.findGraph(group.name))
    return Status(Code::Usage, fmt::format("the model has a method of this name; it has {}",
                                           describeMethods(root)));
  if (group.members.size() < 2)
    return Status(Code::Usage, "it needs two entries or more, as in clip=encode_image+encode_text");
  std::vector<const ir::Graph *> members;
  for (const std::string &name : group.members) {
    const ir::Graph *const member = root.findGraph(name);
    if (!member)
      return Status(Code::Usage, fmt::format("the model has no method '{}'; it has {}", name,
                                             describeMethods(root)));
    if (llvm::is_contained(members, member))
      return Status(Code::Usage, fmt::format("it names '{}' twice", name));
    members.push_back(member);
  }
  return members;
}

Result<std::unique_ptr<ir::Graph>> joined(const ir::Module &root, const EntryGroup &group) {
  CGC_ASSIGN_OR_RETURN(const auto members, membersOf(root, group));
  std::vector<std::vector<std::string>> inputNames, outputNames;
  for (const ir::Graph *member : members) {
    auto &names = inputNames.emplace_back();
    for (const ir::Value *input : member->inputs())
      if (isTensorInput(*input))
        names.push_back(input->name());
    outputNames.push_back(outputNamesOf(*member));
  }
  CGC_TRY(makeDifferent(members, "_", inputNames));
  CGC_TRY(makeDifferent(members, ".", outputNames));

  auto graph = std::make_unique<ir::Graph>(group.name);
  std::vector<std::vector<ir::Arg>> args; // Of the call of each member.
  for (auto [member, names] : llvm::zip_equal(members, inputNames)) {
    auto &callArgs = args.emplace_back();
    auto name = names.begin();
    for (const ir::Value *input : member->inputs()) {
      if (!isTensorInput(*input)) {
        callArgs.push_back(*input->node()->defaultValue());
        continue;
      }
      ir::Node *placeholder = graph->placeholder(*name++, input->type(), input->node()->loc());
      placeholder->setArgs(input->node()->args().vec());
      callArgs.emplace_back(placeholder->result());
    }
  }
  std::vector<ir::Arg> outputs;
  for (auto [member, callArgs] : llvm::zip_equal(members, args)) {
    ir::Node *call =
        graph->callModule(member->name(), callArgs, static_cast<unsigned>(member->outputs().size()),
                          ir::Loc::unknown());
    for (ir::Value &result : call->results())
      outputs.emplace_back(&result);
  }
  graph->createOutput(std::move(outputs), ir::Loc::unknown());
  std::vector<std::string> names;
  for (const auto &list : outputNames)
    names.insert(names.end(), list.begin(), list.end());
  graph->setOutputNames(std::move(names));
  return graph;
}

} // namespace

bool isTensorInput(const ir::Value &input) {
  const ir::Arg *value = input.node()->defaultValue();
  return !value || value->isNone();
}

Status addEntryGroups(ir::Module &root, const std::vector<EntryGroup> &groups) {
  std::vector<std::unique_ptr<ir::Graph>> graphs; // Added at the end, so that none is a member.
  for (const EntryGroup &group : groups) {
    auto graph = joined(root, group);
    if (!graph.isOk())
      return graph.status().withContext("entry group '" + group.name + "'");
    if (llvm::any_of(graphs, [&](const auto &other) { return other->name() == group.name; }))
      return {Code::Usage, "two entry groups are called '" + group.name + "'"};
    graphs.push_back(*std::move(graph));
  }
  for (auto &graph : graphs)
    root.addGraph(std::move(graph));
  return Status::ok();
}

} // namespace cgc::driver
