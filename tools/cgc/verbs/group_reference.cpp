// GroupReference: divides the inputs of a group between its members by their names.
#include "tools/cgc/verbs/group_reference.h"

#include <algorithm>
#include <iterator>

namespace cgc::tool {

Result<GroupSignatures> GroupSignatures::create(const frontend::Api &frontend,
                                                const std::string &model,
                                                const std::vector<driver::EntryGroup> &groups) {
  GroupSignatures signatures;
  if (groups.empty())
    return signatures;
  CGC_ASSIGN_OR_RETURN(const auto root, frontend.import(model, frontend::ImportFor::Inference));
  CGC_TRY(driver::addEntryGroups(*root, groups));
  for (const driver::EntryGroup &group : groups) {
    auto &members = signatures.groups_.emplace_back(group.name, std::vector<Member>()).second;
    for (const std::string &method : group.members) {
      Member &member = members.emplace_back(Member{method, {}});
      for (const ir::Value *input : root->findGraph(method)->inputs())
        if (driver::isTensorInput(*input))
          member.inputs.push_back(input->name());
    }
  }
  return signatures;
}

const std::vector<GroupSignatures::Member> *GroupSignatures::find(const std::string &entry) const {
  const auto found =
      std::ranges::find(groups_, entry, [](const auto &group) { return group.first; });
  return found == groups_.end() ? nullptr : &found->second;
}

Result<std::vector<frontend::HostTensor>> GroupReference::run(const std::string &method,
                                                              std::span<const TensorView> inputs,
                                                              std::span<const std::string> names) {
  const auto *const members = signatures_.find(method);
  if (!members)
    return reference_.run(method, inputs, names);
  std::vector<frontend::HostTensor> all;
  size_t next = 0;
  for (const GroupSignatures::Member &member : *members) {
    // An input of the group has the member's name for it, or that behind the method's name.
    const size_t first = next;
    std::vector<std::string> own;
    for (const std::string &input : member.inputs)
      if (next < names.size() &&
          (names[next] == input || names[next] == member.method + "_" + input)) {
        own.push_back(input);
        ++next;
      }
    CGC_ASSIGN_OR_RETURN(auto outputs,
                         reference_.run(member.method, inputs.subspan(first, own.size()), own));
    std::ranges::move(outputs, std::back_inserter(all));
  }
  if (next != inputs.size())
    return Status(Code::Usage, "the inputs of the plan's entry '" + method +
                                   "' are not those of the group; give --entry-group as for "
                                   "compile");
  return all;
}

} // namespace cgc::tool
