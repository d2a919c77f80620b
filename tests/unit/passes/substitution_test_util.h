// Helpers for tests of substitutions: a model, compiling it, and matching refusals.
#pragma once

#include "passes/pipeline.h"
#include "tests/unit/passes/passes_test_util.h"

#include "gmock/gmock.h"

namespace cgc::passes {

/// Two blocks that differ in their paths and attributes, and two factors.
inline constexpr const char *kModel = R"(
module @Root class="Model" {
  module @blocks class="Sequential" {
    module @0 class="Block" {
      attr heads = 4
      graph @forward(%x: dynamic) -> dynamic {
        %0 = aten.relu(%x) : dynamic loc("block.py":3 "blocks.0")
        output %0
      }
    }
    module @1 class="Block" {
      attr heads = 8
      graph @forward(%x: dynamic) -> dynamic {
        %0 = aten.relu(%x) : dynamic loc("block.py":3 "blocks.1")
        output %0
      }
    }
  }
  graph @forward(%x: f32[2,2]) {
    %0 = call_module @blocks.0.forward(%x) : dynamic
    %1 = call_module @blocks.1.forward(%0) : dynamic
    %2 = aten.mul(%1, 2.0) : dynamic
    %3 = aten.mul(%2, 3.0) : dynamic
    output %3
  }
})";

/// Compiles the model with the built pipeline for f32[2,2].
inline Result<std::unique_ptr<ir::Graph>> compileModel(ir::Module &module,
                                                       PipelineBuilder &builder) {
  CGC_ASSIGN_OR_RETURN(const Pipeline pipeline, builder.build());
  CGC_TRY(pipeline.prepare(module, {}));
  return pipeline.specialize(*module.findGraph("forward"), "g",
                             {ir::Type(ir::TensorType::dense(DType::F32, {2, 2}))}, {});
}

inline std::vector<std::string> opsOf(const ir::Graph &graph) {
  std::vector<std::string> ops;
  for (const ir::Node &node : graph)
    if (node.kind() == ir::NodeKind::CallFunction)
      ops.push_back(ir::opName(node.op()).str());
  return ops;
}

/// Matches a Status with this code whose message contains each of `parts`.
template <class... Parts> auto refuses(Code code, const Parts &...parts) {
  using namespace ::testing;
  return AllOf(Property("code", &Status::code, code),
               Property("message", &Status::message, AllOf(HasSubstr(parts)...)));
}

/// Returns the refusal of a substitution that gives `given` in place of `original`.
inline std::string anotherType(const std::string &given, const std::string &original) {
  return "gives " + given + ", and what it replaces gives " + original + "; make it give the same";
}

} // namespace cgc::passes
