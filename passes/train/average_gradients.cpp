// average-gradients: the means of gradients, loss and metrics over all ranks.
#include "passes/manager/registered_pass.h"
#include "passes/preconditions.h"
#include "passes/train/differentiate.h"
#include "passes/train/step_builder.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {

/// For a training on several ranks, after `differentiate` and before `optimize`: each gradient, the
/// loss, and each other floating output without dimensions become their means over all ranks, each
/// by a cgc.all_reduce of its own. So the norm of clipping, and whether a loss scale skips the
/// step, are the same on all ranks. Usage if there are no gradients.
struct AverageGradientsPass {
  static constexpr const char *name = "average-gradients";
  static constexpr bool isRequired = true;
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

Result<Changed> AverageGradientsPass::run(ir::Graph &graph, PassContext &) const {
  CGC_TRY(requireTypes(graph));
  CGC_TRY(requireFunctional(graph));
  std::vector<ir::Arg> outputs = graph.outputs().vec();
  const std::vector<std::string> names = graph.outputNames();
  if (names.size() != outputs.size() ||
      llvm::none_of(names, [](const std::string &name) { return !gradientPath(name).empty(); }))
    return Status(Code::Usage, "the graph has no gradients: run the pass 'differentiate' first");
  StepBuilder builder(graph);
  for (const auto &[output, name] : llvm::zip_equal(outputs, names)) {
    if (!output.isValue() || !isFloating(output.value()->tensor().dtype) ||
        (gradientPath(name).empty() && output.value()->tensor().rank() > 0))
      continue;
    output = builder.call(ir::OpKind::CgcAllReduce, {ir::Arg::List{output}, std::string("mean")});
  }
  graph.setOutputs(std::move(outputs), names);
  return Changed::Yes;
}

CGC_DEFINE_PASS(AverageGradientsPass)

} // namespace cgc::passes
