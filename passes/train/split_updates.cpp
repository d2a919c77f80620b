// split-updates: updates that wait for one bucket of gradients each.
#include "ir/rewriter.h"
#include "passes/manager/registered_pass.h"
#include "passes/preconditions.h"

#include "llvm/ADT/STLExtras.h"

#include <numeric>
#include <vector>

namespace cgc::passes {

/// For a training on several ranks, after `join-collectives`: a call of an optimizer whose
/// gradients come from several calls of cgc.all_reduce becomes one call for each of them, so that
/// the parameters of one bucket are updated while another one is reduced. Calls of fewer than
/// `elements` elements are joined. Calls with a scale or a skip, which depend on all gradients,
/// stay whole.
struct SplitUpdatesPass {
  static constexpr const char *name = "split-updates";
  /// Option: elements, at least 1.
  static Result<SplitUpdatesPass> create(PassOptions &options);
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;

  uint64_t elements = 8 << 20; ///< Updating as many takes several times as long as a launch.
};

namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

/// The positions in the lists of an update that make a call of their own.
using Part = std::vector<size_t>;

/// The parts of an update of at least `elements` elements, in the order of their collectives.
std::vector<Part> partsOf(const Node &update, uint64_t elements) {
  const Arg::List &gradients = update.arg("gradients").list();
  const auto nodeOf = [&](size_t i) { return gradients[i].value()->node(); };
  Part order(gradients.size());
  std::iota(order.begin(), order.end(), size_t(0));
  llvm::stable_sort(order, [&](size_t a, size_t b) {
    return nodeOf(a) != nodeOf(b) && nodeOf(a)->isBefore(*nodeOf(b));
  });
  std::vector<Part> parts;
  uint64_t size = elements; // Of the last part.
  for (const auto &[at, i] : llvm::enumerate(order)) {
    const bool isOfNext =
        at > 0 && nodeOf(i) != nodeOf(order[at - 1]) && nodeOf(i)->is(OpKind::CgcAllReduce);
    if (parts.empty() || (isOfNext && size >= elements)) {
      parts.emplace_back();
      size = 0;
    }
    parts.back().push_back(i);
    size += gradients[i].value()->tensor().numElements();
  }
  return parts;
}

/// Replaces `update` by calls for its parts.
void split(Node &update, const std::vector<Part> &parts, ir::GraphRewriter &rewriter) {
  const size_t count = update.arg("gradients").list().size();
  for (const Part &indices : parts) {
    std::vector<Arg> args;
    for (const Arg &arg : update.args()) {
      if (!arg.isList() || arg.list().size() != count) {
        args.push_back(arg);
        continue;
      }
      Arg::List picked;
      for (const size_t i : indices)
        picked.push_back(arg.list()[i]);
      args.emplace_back(std::move(picked));
    }
    Node *const part = rewriter.create(update.op(), std::move(args), update, &update);
    unsigned next = 0; // The results have list after list, as those of the whole.
    for (size_t list = 0; list < update.numResults() / count; ++list)
      for (const size_t i : indices)
        rewriter.replaceAllUsesWith(update.result(static_cast<unsigned>(list * count + i)),
                                    part->result(next++));
  }
  rewriter.erase(&update);
}

} // namespace

Result<SplitUpdatesPass> SplitUpdatesPass::create(PassOptions &options) {
  SplitUpdatesPass pass;
  CGC_TRY(options.takePositive("elements", pass.elements));
  return pass;
}

Result<Changed> SplitUpdatesPass::run(ir::Graph &graph, PassContext &) const {
  CGC_TRY(requireTypes(graph));
  ir::GraphRewriter rewriter(graph);
  for (Node &node : llvm::make_early_inc_range(graph)) {
    if (!(node.is(OpKind::CgcAdam) || node.is(OpKind::CgcSgd)) || node.arg("scale").isValue() ||
        node.arg("skip").isValue())
      continue;
    if (const std::vector<Part> parts = partsOf(node, elements); parts.size() > 1)
      split(node, parts, rewriter);
  }
  return rewriter.changed() ? Changed::Yes : Changed::No;
}

CGC_DEFINE_PASS(SplitUpdatesPass)

} // namespace cgc::passes
