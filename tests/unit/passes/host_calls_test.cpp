// host-calls and the types of host calls: which calls are left to the host, and what is refused.
#include "passes/specialize/host_calls.h"

#include "ir/op_views.h"
#include "tests/unit/passes/substitution_test_util.h"

namespace cgc::passes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A model with a gate that cgc cannot compile.
constexpr const char *kGated = R"(
module @Root class="Model" {
  module @gate class="Gate" {
    graph @forward(%x: dynamic, %scale: dynamic = 1.0) -> dynamic {
      %0 = prim.refused() {reason="no", cause="data-flow"} : dynamic
      output %0
    }
  }
  module @double class="Double" {
    graph @forward(%x: dynamic) -> dynamic {
      %0 = call_module @inner.forward(%x) : dynamic
      output %0
    }
    module @inner class="Double" {
      graph @forward(%x: dynamic) -> dynamic {
        %0 = aten.add(%x, %x) : dynamic
        output %0
      }
    }
  }
  graph @forward(%x: f32[2,2]) {
    %0 = aten.relu(%x) : dynamic
    %1 = call_module @gate.forward(%0, SCALE) : dynamic
    USE
    output %2
  }
})";

std::string gated(std::string use, std::string scale = "1.0") {
  std::string text = kGated;
  text.replace(text.find("SCALE"), 5, scale);
  text.replace(text.find("USE"), 3, use);
  return text;
}

class HostCallTypes : public testing::Test {
protected:
  /// Compiles for f32[2,2] with the gate left to the host, which gives `results`.
  Result<std::unique_ptr<ir::Graph>> compile(const std::string &text, Result<HostResults> results) {
    module_ = parse(text);
    CGC_ASSIGN_OR_RETURN(
        const Pipeline pipeline,
        PipelineBuilder()
            .setPasses("host-calls{module=gate},inline,specialize,canonicalize,fold,cse,dce")
            .build());
    CGC_TRY(pipeline.prepare(*module_, {}));
    const HostTypes types = [&](const std::string &function,
                                llvm::ArrayRef<ir::TensorType> inputs) {
      std::string asked = function;
      for (const ir::TensorType &type : inputs)
        asked += " " + toString(type);
      asked_.push_back(asked);
      return results;
    };
    ir::Diagnostics diagnostics;
    auto graph = pipeline.specialize(*module_->findGraph("forward"), "g",
                                     {ir::Type(ir::TensorType::dense(DType::F32, {2, 2}))},
                                     {.hostTypes = &types, .diagnostics = &diagnostics});
    errors_ = diagnostics.render();
    return graph;
  }

  static ir::TensorType type(llvm::ArrayRef<int64_t> sizes) {
    return ir::TensorType::dense(DType::F32, sizes);
  }

  std::unique_ptr<ir::Module> module_; ///< Owns what the graph refers to.
  std::vector<std::string> asked_;
  std::string errors_;
};

TEST_F(HostCallTypes, ATensorIsAResult) {
  const auto graph = compile(gated("%2 = aten.neg(%1) : dynamic"), HostResults{{type({3})}});
  ASSERT_TRUE(graph) << errors_;
  EXPECT_THAT(opsOf(**graph), ElementsAre("aten.relu", "cgc.host_call", "aten.neg"));
  EXPECT_THAT(asked_, ElementsAre("gate.forward f32[2,2]"));
  EXPECT_THAT(ir::toString(**graph),
              HasSubstr(R"({module="gate", method="forward", takes=["f32[2,2]"], )"
                        R"(gives=["f32[3]"]} : f32[3])"));
}

TEST_F(HostCallTypes, ATupleHasAResultForEachTensor) {
  const auto graph = compile(gated("%a, %b = prim.unpack(%1) : dynamic, dynamic\n"
                                   "    %2 = aten.add(%a, %b) : dynamic"),
                             HostResults{{type({2, 1}), type({3})}, /*isTuple=*/true});
  ASSERT_TRUE(graph) << errors_;
  EXPECT_EQ((*graph)->outputs().front().value()->tensor(), type({2, 3}));
  // A tuple of one tensor is no tensor.
  EXPECT_FALSE(
      compile(gated("%2 = aten.neg(%1) : dynamic"), HostResults{{type({3})}, /*isTuple=*/true}));
}

TEST_F(HostCallTypes, AnArgumentThatIsNoTensorIsRefused) {
  EXPECT_FALSE(compile(gated("%2 = aten.neg(%1) : dynamic", "2.0"), HostResults{{type({3})}}));
  EXPECT_THAT(errors_, HasSubstr("2.0 is passed to a module of the host, which takes tensors"));
  EXPECT_TRUE(asked_.empty());
}

TEST_F(HostCallTypes, TheReasonOfTheHostIsAnErrorOfTheModel) {
  EXPECT_FALSE(compile(gated("%2 = aten.neg(%1) : dynamic"),
                       Status(Code::Unsupported, "LibTorch, gate.forward: it returns a str")));
  EXPECT_THAT(errors_, HasSubstr("LibTorch, gate.forward: it returns a str"));
}

TEST_F(HostCallTypes, ACallWhoseTypesNobodyKnowsIsRefused) {
  const auto module = parse(gated("%2 = aten.neg(%1) : dynamic"));
  ir::Diagnostics diagnostics;
  EXPECT_FALSE(
      runPasses(*module, "host-calls{module=gate},inline,specialize", {.diagnostics = &diagnostics})
          .isOk());
  EXPECT_THAT(diagnostics.render(), HasSubstr("the types of its results are not known here"));
}

TEST(HostCalls, AGlobHasToMatchACall) {
  const auto run = [](const std::string &glob) {
    return runPasses(*parse(gated("%2 = call_module @double.forward(%1) : dynamic")),
                     "host-calls{module=" + glob + "}");
  };
  EXPECT_TRUE(run("gate").isOk());
  EXPECT_TRUE(run("double.inner").isOk());
  EXPECT_TRUE(run("**").isOk());
  EXPECT_THAT(
      run("gates"),
      refuses(Code::Usage, "no module that is called matches 'gates'; did you mean 'gate'?"));
  EXPECT_THAT(run("visual.*"), refuses(Code::Usage, "no module that is called matches 'visual.*'",
                                       "the model calls 3 modules, the first is 'double'"));
}

TEST(HostCalls, TwoGlobsMayMatchTheSameCall) {
  const auto module = parse(gated("%2 = aten.neg(%1) : dynamic"));
  EXPECT_TRUE(runPasses(*module, "host-calls{module=gate},host-calls{module=g*}").isOk());
  EXPECT_THAT(PassManager::parse("host-calls").status(),
              refuses(Code::Usage, "'host-calls' needs the path of a module or a glob"));
}

} // namespace
} // namespace cgc::passes
