// Entry groups: entries that run several methods of the model at once.
#pragma once

#include "ir/module.h"
#include "runtime/base/status.h"

#include <string>
#include <vector>

namespace cgc::driver {

/// An entry made of several methods: it takes the inputs of all members and returns their outputs,
/// both in the order of the members. It shares the weights with the entries of its members.
struct EntryGroup {
  std::string name;
  std::vector<std::string> members;
};

/// Whether callers give a tensor for this input of a method. Other inputs have a default value.
bool isTensorInput(const ir::Value &input);

/// Adds a method to `root` for each group, which calls the members. An input or output has the name
/// that it has in its member; if several members have one of this name, `MEMBER_NAME` for inputs
/// and `MEMBER.NAME` for outputs. Outputs without names have the member's name, with `.0`, `.1`, …
/// if there are several. Inputs that are no tensors keep their defaults. Usage, naming the group,
/// if its name is no identifier or that of a method, if it has less than two members or one twice,
/// if the model has no such method, or if two inputs or outputs still have one name.
Status addEntryGroups(ir::Module &root, const std::vector<EntryGroup> &groups);

} // namespace cgc::driver
