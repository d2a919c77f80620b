#include "frontend/exported/value_uses.h"

#include "runtime/base/printable.h"

#include "llvm/ADT/StringSet.h"

namespace cgc::exported {
namespace {

Status malformed(const std::string &name, const char *how) {
  return Status(Code::InvalidFile, "the value '" + printable(name) + "' " + how +
                                       "; this is not what torch.export writes: export the model "
                                       "again");
}

} // namespace

Result<ValueUses> ValueUses::of(const Program &program) {
  ValueUses uses;
  Status status; // The first error.
  const auto fail = [&](const std::string &name, const char *how) {
    if (status.isOk())
      status = malformed(name, how);
  };
  const auto make = [&](const Argument &argument, size_t begin) {
    argument.forEachName([&](const Argument::Name &name) {
      if (!uses.values_.try_emplace(name.name, Value{begin, 0}).second)
        fail(name.name, "is made twice");
    });
  };
  const auto read = [&](const Argument &argument, size_t end) {
    argument.forEachName([&](const Argument::Name &name) {
      const auto found = uses.values_.find(name.name);
      if (found == uses.values_.end())
        fail(name.name, "is read before it is made");
      else
        found->second.end = end;
    });
  };
  for (const InputSpec &input : program.inputs)
    make(input.argument, 0);
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    for (const NamedArgument &input : program.nodes[i].inputs)
      read(input.argument, i + 1);
    for (const Argument &output : program.nodes[i].outputs)
      make(output, i + 1);
  }
  for (const OutputSpec &output : program.outputs)
    read(output.argument, program.nodes.size() + 1);
  if (!status.isOk())
    return status;
  return uses;
}

std::vector<std::string> ValueUses::inputsOf(const Program &program, const Scope &scope) const {
  std::vector<std::string> names;
  llvm::StringSet<> seen;
  for (size_t i = scope.begin; i < scope.end; ++i)
    for (const NamedArgument &input : program.nodes[i].inputs)
      input.argument.forEachName([&](const Argument::Name &name) {
        if (values_.lookup(name.name).begin <= scope.begin && seen.insert(name.name).second)
          names.push_back(name.name);
      });
  return names;
}

std::vector<std::string> ValueUses::outputsOf(const Program &program, const Scope &scope) const {
  std::vector<std::string> names;
  for (size_t i = scope.begin; i < scope.end; ++i)
    for (const Argument &output : program.nodes[i].outputs)
      output.forEachName([&](const Argument::Name &name) {
        if (values_.lookup(name.name).end > scope.end)
          names.push_back(name.name);
      });
  return names;
}

} // namespace cgc::exported
