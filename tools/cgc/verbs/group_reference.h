// GroupReference: runs the entry groups of a plan with LibTorch, method by method.
#pragma once

#include "driver/entry_groups.h"
#include "frontend/frontend.h"

#include <memory>
#include <string>
#include <vector>

namespace cgc::tool {

/// The inputs of the members of entry groups.
class GroupSignatures final {
public:
  /// Reads the methods' inputs from the model. Usage, as driver::addEntryGroups(), if a group does
  /// not fit it.
  static Result<GroupSignatures> create(const frontend::Api &frontend, const std::string &model,
                                        const std::vector<driver::EntryGroup> &groups);

  struct Member {
    std::string method;
    std::vector<std::string> inputs; ///< Without inputs that are no tensors.
  };
  /// The members of a group; null if `entry` is no group.
  const std::vector<Member> *find(const std::string &entry) const;

private:
  std::vector<std::pair<std::string, std::vector<Member>>> groups_;
};

/// A reference that also runs groups: the members one after another, on their parts of the inputs.
/// Borrows both.
class GroupReference final : public frontend::Reference {
public:
  GroupReference(frontend::Reference &reference, const GroupSignatures &signatures)
      : reference_(reference), signatures_(signatures) {}

  Result<std::vector<frontend::HostTensor>> run(const std::string &method,
                                                std::span<const TensorView> inputs,
                                                std::span<const std::string> names) override;

private:
  frontend::Reference &reference_;
  const GroupSignatures &signatures_;
};

} // namespace cgc::tool
