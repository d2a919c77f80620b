// UpdateParts: picks elements of all lists.
#include "passes/train/update_parts.h"

#include "llvm/ADT/STLExtras.h"

#include <numeric>

namespace cgc::passes {

UpdatePart inOrderOfGradients(const ir::Node &update) {
  const ir::Arg::List &gradients = update.arg("gradients").list();
  const auto nodeOf = [&](size_t i) { return gradients[i].value()->node(); };
  UpdatePart order(gradients.size());
  std::iota(order.begin(), order.end(), size_t(0));
  llvm::stable_sort(order, [&](size_t a, size_t b) {
    return nodeOf(a) != nodeOf(b) && nodeOf(a)->isBefore(*nodeOf(b));
  });
  return order;
}

std::vector<ir::Node *> splitUpdate(ir::Node &update, llvm::ArrayRef<UpdatePart> parts,
                                    ir::GraphRewriter &rewriter) {
  const size_t count = update.args().front().list().size();
  std::vector<ir::Node *> calls;
  for (const UpdatePart &indices : parts) {
    std::vector<ir::Arg> args;
    for (const ir::Arg &arg : update.args()) {
      if (!arg.isList() || arg.list().size() != count) {
        args.push_back(arg);
        continue;
      }
      ir::Arg::List picked;
      for (const size_t i : indices)
        picked.push_back(arg.list()[i]);
      args.emplace_back(std::move(picked));
    }
    ir::Node *const part = rewriter.create(update.op(), std::move(args), update, &update);
    unsigned next = 0; // The results have list after list, as those of the whole.
    for (size_t list = 0; list < update.numResults() / count; ++list)
      for (const size_t i : indices)
        rewriter.replaceAllUsesWith(update.result(static_cast<unsigned>(list * count + i)),
                                    part->result(next++));
    calls.push_back(part);
  }
  rewriter.erase(&update);
  return calls;
}

} // namespace cgc::passes
