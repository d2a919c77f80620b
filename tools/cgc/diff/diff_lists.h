// Diff lists: extracts what cgc diff compares: the ops of each graph of a module or each bucket of
// a plan, and facts about the whole file.
#pragma once

#include "ir/module.h"
#include "runtime/plan/plan.h"
#include "tools/cgc/diff/op_diff.h"

#include <map>
#include <string>
#include <vector>

namespace cgc::tool {

struct DiffLists {
  /// Ops by title: "graph @visual.forward", "entry encode_image, image[1,3,32,32]".
  std::map<std::string, std::vector<DiffOp>> lists;
  /// Facts by name: parameters, weights, the target, op libraries.
  std::map<std::string, std::string> facts;
};

DiffLists diffListsOf(const ir::Module &root);
DiffLists diffListsOf(const PlanData &plan);

} // namespace cgc::tool
