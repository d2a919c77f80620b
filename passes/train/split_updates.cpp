// split-updates: updates that wait for one bucket of gradients each.
#include "ir/rewriter.h"
#include "passes/manager/registered_pass.h"
#include "passes/preconditions.h"
#include "passes/train/update_parts.h"

#include "llvm/ADT/STLExtras.h"

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

/// The parts of an update of at least `elements` elements, in the order of their collectives.
std::vector<UpdatePart> partsOf(const Node &update, uint64_t elements) {
  const Arg::List &gradients = update.arg("gradients").list();
  const auto nodeOf = [&](size_t i) { return gradients[i].value()->node(); };
  const UpdatePart order = inOrderOfGradients(update);
  std::vector<UpdatePart> parts;
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
    if (const std::vector<UpdatePart> parts = partsOf(node, elements); parts.size() > 1)
      splitUpdate(node, parts, rewriter);
  }
  return rewriter.changed() ? Changed::Yes : Changed::No;
}

CGC_DEFINE_PASS(SplitUpdatesPass)

} // namespace cgc::passes
