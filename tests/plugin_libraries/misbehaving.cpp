// A plug-in with passes that do wrong, and substitutions of which CGC_TEST_REGISTER chooses one.
#include "passes/plugin.h"

#include <stdexcept>

using namespace cgc;

namespace {

struct ThrowingPass {
  static constexpr const char *name = "throwing";
  Result<passes::Changed> run(ir::Graph &, passes::PassContext &) const {
    throw std::runtime_error("the pass gave up");
  }
};

struct BreakingPass {
  static constexpr const char *name = "breaking";
  Result<passes::Changed> run(ir::Graph &graph, passes::PassContext &) const {
    graph.outputs().front().value()->setType(ir::TensorType::dense(DType::F64, {1, 2, 3}));
    return passes::Changed::Yes;
  }
};

/// Returns a list that is nested deeper than text may be.
struct DeepPass {
  static constexpr const char *name = "deep";
  Result<passes::Changed> run(ir::Graph &graph, passes::PassContext &) const {
    ir::Arg list{ir::Arg::List()};
    for (int depth = 0; depth < 64; ++depth)
      list = ir::Arg(ir::Arg::List{list});
    graph.output()->setArgs({list});
    return passes::Changed::Yes;
  }
};

[[maybe_unused]] void registerPasses(passes::PipelineBuilder &builder) {
  builder.registerPass<ThrowingPass>().registerPass<BreakingPass>().registerPass<DeepPass>();
}

/// Never called: the plug-in says that it was built against another cgc.
[[maybe_unused]] void registerForAnotherBuild(passes::PipelineBuilder &) {}

[[maybe_unused]] void registerNothing(passes::PipelineBuilder &) {
  throw std::runtime_error("nothing to register");
}

/// sigmoid becomes a sum.
[[maybe_unused]] void registerOtherOpType(passes::PipelineBuilder &builder) {
  passes::OpSubstitution substitution;
  substitution.name = "sigmoid-to-sum";
  substitution.pattern =
      "graph @p(%x: dynamic) {\n  %0 = aten.sigmoid(%x) : dynamic\n  output %0\n}";
  substitution.replacement =
      "graph @r(%x: dynamic) {\n  %0 = aten.sum(%x) : dynamic\n  output %0\n}";
  builder.registerOpSubstitution(std::move(substitution));
}

/// Each QuickGELU returns its input's sum.
[[maybe_unused]] void registerOtherModuleType(passes::PipelineBuilder &builder) {
  passes::ModuleSubstitution substitution;
  substitution.name = "gelu-to-sum";
  substitution.className = "QuickGELU";
  substitution.replaceBody = [](ir::Module &module) {
    for (const auto &graph : module.graphs()) {
      ir::Node *sum =
          graph->call(ir::OpKind::Sum, {graph->inputs()[0], ir::Arg(), false, ir::Arg()}, 1,
                      ir::Loc::unknown(), graph->output());
      graph->output()->setArgs({ir::Arg(sum->result())});
    }
    return Status::ok();
  };
  builder.registerModuleSubstitution(std::move(substitution));
}

[[maybe_unused]] void registerBadText(passes::PipelineBuilder &builder) {
  passes::OpSubstitution substitution;
  substitution.name = "bad-text";
  substitution.pattern = "graph @p(%x: dynamic) {\n  %0 = aten.exq(%x) : dynamic\n  output %0\n}";
  substitution.replacement = substitution.pattern;
  builder.registerOpSubstitution(std::move(substitution));
}

} // namespace

extern "C" const passes::PassPlugin *cgcPassPlugin() {
  static constexpr passes::PassPlugin plugin = {
      passes::kPassPluginAbi, "misbehaving", CGC_TEST_REGISTER,
      passes::kPassPluginBuild + (CGC_TEST_REGISTER == registerForAnotherBuild)};
  return &plugin;
}
