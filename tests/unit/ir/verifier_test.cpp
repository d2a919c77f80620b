// Verifier: one test for each invariant, with a graph that violates only that one.
#include "ir_test_util.h"

#include "llvm/ADT/Twine.h"

namespace cgc::ir {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Returns the verifier's errors for a graph that text cannot express.
std::string graphErrors(const Graph &graph) {
  Diagnostics diagnostics;
  verify(graph, diagnostics);
  return diagnostics.render();
}

const Type kF32x2 = TensorType::dense(DType::F32, {2});

/// `%x -> relu %0 -> output`, for the tests to corrupt.
struct Relu {
  Graph graph{"f"};
  Value *x = graph.placeholder("x", kF32x2, Loc::unknown())->result();
  Node *relu = graph.call(OpKind::Relu, {x}, 1, Loc::unknown());
  Node *output = nullptr;
  Relu() {
    relu->result()->setType(kF32x2);
    output = graph.createOutput({relu->result()}, Loc::unknown());
  }
};

TEST(Verifier, AcceptsAGoodModule) {
  EXPECT_EQ(verifyErrors(R"(
    module @m {
      param @w : f32[4,2]
      module @child {
        buffer @b : f32[4]
        graph @forward(%x: f32[2,4], %y: dynamic) -> (f32[2,4], dynamic) {
          %b = get_attr @b : f32[4]@cuda
          %0 = aten.relu_(%x) : f32[2,4]
          output %0, 3
        }
      }
      graph @forward(%x: f32[3,2], %y: dynamic) -> (a: dynamic, b: f32[3,2]) {
        %w = get_attr @w : f32[4,2]
        %b = get_attr @child.b : f32[4]
        %n = aten.size(%y) {dim=0} : dynamic
        %v = aten.view(%x) {size=[%n, -1]} : dynamic
        %0, %1 = call_module @child.forward(%v, none) : dynamic, dynamic
        call_module @nothing()
        output %0, %x
      }
      graph @nothing() -> () {
        output
      }
    })"),
            "");
}

TEST(Verifier, ReportsEveryError) {
  std::string errors = verifyErrors("graph @f(%x: f32[2]) {\n"
                                    "  %0 = get_attr @a : f32[2]\n"
                                    "  %1 = get_attr @b : f32[2]\n"
                                    "}\n");
  EXPECT_THAT(errors, AllOf(HasSubstr("'a'"), HasSubstr("'b'"), HasSubstr("no output node")));
}

TEST(Verifier, NamesTheNodeAndItsPlaceInTheModel) {
  EXPECT_EQ(verifyErrors("graph @f() {\n"
                         "  %0 = get_attr @a : f32[2] loc(\"model.py\":7 \"visual\")\n"
                         "  output %0\n"
                         "}\n"),
            "model.py:7: error: module 'root' has no parameter 'a'\n"
            "  %0 = get_attr @a : f32[2]\n"
            "  in module 'visual'\n");
}

TEST(Verifier, OutputIsThere) {
  EXPECT_EQ(verifyErrors("graph @f(%x: f32[2]) {\n}"),
            "error: the graph has no output node\n  graph @f\n");
  EXPECT_THAT(graphErrors(Graph("empty")), HasSubstr("no output node"));
}

TEST(Verifier, OutputIsLast) {
  EXPECT_THAT(verifyErrors("graph @f(%x: f32[2]) {\n  output %x\n  %0 = aten.relu(%x) : f32[2]\n}"),
              HasSubstr("the output node comes last"));
}

TEST(Verifier, OutputIsSingle) {
  Relu test;
  Node *late = test.graph.call(OpKind::Relu, {test.x}, 1, Loc::unknown());
  test.graph.createOutput({}, Loc::unknown());
  test.graph.erase(late);
  EXPECT_THAT(graphErrors(test.graph), HasSubstr("this is another"));
}

TEST(Verifier, PlaceholdersComeFirst) {
  Relu test;
  test.graph.getAttr("early", Type(), Loc::unknown(), test.x->node());
  EXPECT_THAT(graphErrors(test.graph), AllOf(HasSubstr("placeholders come before all other nodes"),
                                             HasSubstr("%x = placeholder")));
}

TEST(Verifier, PlaceholdersHaveNoArgumentButADefault) {
  Relu test;
  test.x->node()->setArgs({Arg(1)});
  EXPECT_EQ(graphErrors(test.graph), "");
  test.x->node()->setArgs({Arg(1), Arg(2)});
  EXPECT_THAT(graphErrors(test.graph), HasSubstr("no argument but a constant default"));
}

TEST(Verifier, ArgumentsAreDefinedBefore) {
  Relu test;
  Node *early = test.graph.call(OpKind::Relu, {test.relu->result()}, 1, Loc::unknown(), test.relu);
  early->result()->setType(test.relu->result()->type());
  EXPECT_THAT(graphErrors(test.graph), HasSubstr("uses '%0' before it is defined"));
}

TEST(Verifier, ArgumentsAreOfTheSameGraph) {
  Relu test, other;
  test.relu->setArg("self", other.x);
  EXPECT_THAT(graphErrors(test.graph), HasSubstr("uses a value that is not in this graph"));
}

TEST(Verifier, UsersAreThoseThatTheArgumentsName) {
  Relu test, other;
  EXPECT_EQ(graphErrors(other.graph), "");
  test.relu->setArg("self", other.x); // Now the values of `other` list a node of `test`.
  EXPECT_THAT(graphErrors(other.graph), HasSubstr("'%x' lists other users"));
}

TEST(Verifier, ValuesInListsAreCheckedToo) {
  Relu test, other;
  test.output->setArgs({Arg(Arg::List{Arg(Arg::List{Arg(other.x)})})});
  EXPECT_THAT(graphErrors(test.graph), HasSubstr("uses a value that is not in this graph"));
}

TEST(Verifier, NumberOfArguments) {
  Relu test;
  test.relu->setArgs({});
  EXPECT_THAT(graphErrors(test.graph), AllOf(HasSubstr("expected 1 argument"), HasSubstr("got 0")));
}

TEST(Verifier, KindsOfArguments) {
  auto errors = [](llvm::StringRef call) {
    return verifyErrors(
        ("graph @f(%x: f32[2,2]) {\n  %0 = " + call + " : dynamic\n  output %0\n}").str());
  };
  EXPECT_THAT(errors("aten.relu(3)"), HasSubstr("argument 'self' must be a tensor"));
  EXPECT_THAT(errors("aten.relu(none)"), HasSubstr("argument 'self' must be a tensor"));
  EXPECT_THAT(errors("aten.transpose(%x) {dim0=0.5, dim1=1}"),
              HasSubstr("argument 'dim0' must be an int"));
  EXPECT_THAT(errors("aten.view(%x) {size=4}"), HasSubstr("argument 'size' must be a list"));
  EXPECT_THAT(errors("aten.gelu(%x) {approximate=1}"), HasSubstr("argument 'approximate'"));
  EXPECT_THAT(errors("aten.to(%x) {dtype=cuda}"), HasSubstr("argument 'dtype'"));
}

TEST(Verifier, NumberOfResults) {
  Relu test;
  test.graph.call(OpKind::Relu, {test.x}, 2, Loc::unknown(), test.output);
  EXPECT_THAT(graphErrors(test.graph), HasSubstr("aten.relu has 1 result, this call 2"));
}

TEST(Verifier, NumberOfListResults) {
  EXPECT_THAT(verifyErrors("graph @f(%x: f32[4]) {\n"
                           "  %0, %1, %2 = aten.chunk(%x) {chunks=2} : f32[2], f32[2], f32[2]\n"
                           "  output %0\n}"),
              HasSubstr("the arguments give 2 results, the call has 3"));
}

TEST(Verifier, ResultTypes) {
  auto errors = [](llvm::StringRef type) {
    return verifyErrors(("graph @f(%x: f32[2,3]) {\n  %0 = aten.transpose(%x) {dim0=0, dim1=1} : " +
                         type + "\n  output %0\n}")
                            .str());
  };
  EXPECT_EQ(errors("f32[3,2][1,3]"), "");
  EXPECT_EQ(errors("dynamic"), "");
  EXPECT_THAT(errors("f32[2,3][1,3]"), HasSubstr("the type of '%0' should be f32[3,2][1,3]"));
  EXPECT_THAT(errors("f32[3,2]"), HasSubstr("should be f32[3,2][1,3]"));
  EXPECT_THAT(errors("f16[3,2][1,3]"), HasSubstr("should be f32[3,2][1,3]"));
}

TEST(Verifier, RulesThatRefuse) {
  EXPECT_NE(verifyErrors("graph @f(%x: f32[2,3]) {\n"
                         "  %0 = aten.view(%x) {size=[4,2]} : f32[4,2]\n"
                         "  output %0\n}"),
            "");
}

TEST(Verifier, InPlaceResultHasTheTypeOfItsArgument) {
  EXPECT_EQ(verifyErrors("graph @f(%x: f16[2], %y: f32[2]) {\n"
                         "  %0 = aten.add_(%x, %y) : f16[2]\n  output %0\n}"),
            "");
  EXPECT_THAT(verifyErrors("graph @f(%x: f16[2], %y: f32[2]) {\n"
                           "  %0 = aten.add_(%x, %y) : f32[2]\n  output %0\n}"),
              HasSubstr("the type of its first argument, f16[2]"));
}

TEST(Verifier, FallbackNamesASchema) {
  EXPECT_THAT(verifyErrors("graph @f() {\n  %0 = aten.fallback \"\" () : dynamic\n  output\n}"),
              HasSubstr("names no ATen schema"));
}

TEST(Verifier, GetAttrHasTheParametersType) {
  auto errors = [](llvm::StringRef type) {
    return verifyErrors(
        ("module @m {\n  param @w : f32[2,3]\n  graph @f() {\n    %0 = get_attr @w : " + type +
         "\n    output %0\n  }\n}")
            .str());
  };
  EXPECT_EQ(errors("f32[2,3]"), "");
  EXPECT_EQ(errors("f32[2,3]@cuda"), "");
  EXPECT_THAT(errors("f16[2,3]"), HasSubstr("the parameter's type is f32[2,3]"));
  EXPECT_THAT(errors("f32[3,2]"), HasSubstr("the parameter's type is f32[2,3]"));
  EXPECT_THAT(errors("f32[2,3][1,2]"), HasSubstr("the parameter's type is f32[2,3]"));
}

TEST(Verifier, CallModuleResolves) {
  EXPECT_THAT(verifyErrors("graph @f() {\n  call_module @a.b.forward()\n  output\n}"),
              HasSubstr("module 'root' has no method 'a.b.forward'"));
}

TEST(Verifier, CallModuleCounts) {
  auto errors = [](llvm::StringRef call) {
    return verifyErrors(("graph @g(%a: dynamic) {\n  output %a\n}\n"
                         "graph @f(%x: f32[2]) {\n  " +
                         call + "\n  output\n}")
                            .str());
  };
  EXPECT_EQ(errors("%0 = call_module @g(%x) : dynamic"), "");
  EXPECT_THAT(errors("%0 = call_module @g(%x, %x) : dynamic"),
              HasSubstr("the method takes 1 input, the call has 2 arguments"));
  EXPECT_THAT(errors("call_module @g(%x)"),
              HasSubstr("the method has 1 output, the call has 0 results"));
}

TEST(Verifier, MethodsDoNotCallThemselves) {
  EXPECT_THAT(verifyErrors("graph @f() {\n  call_module @g()\n  output\n}\n"
                           "graph @g() {\n  call_module @f()\n  output\n}\n"),
              HasSubstr("the method calls itself"));
}

TEST(Verifier, OutputNames) {
  Relu test;
  test.graph.setOutputNames({"a", "b"});
  EXPECT_THAT(graphErrors(test.graph), HasSubstr("the graph has 2 output names for 1 output"));
  test.output->setArgs({Arg(test.x), Arg(test.x)});
  EXPECT_EQ(graphErrors(test.graph), "");
  test.graph.setOutputNames({"a", "a"});
  EXPECT_THAT(graphErrors(test.graph), HasSubstr("two outputs are named 'a'"));
}

TEST(Verifier, WhatItFindsInTextHasACaret) {
  Diagnostics diagnostics;
  EXPECT_FALSE(parseAndVerify("graph @f(%x: f32[2], %i: i64[2]) {\n"
                              "  %0 = aten.relu(%x) : f32[3]\n"
                              "  %1 = aten.gelu(%i) : i64[2]\n"
                              "}\n",
                              "bad.cgir", diagnostics));
  const std::string text = diagnostics.render();
  EXPECT_THAT(text, testing::HasSubstr("bad.cgir:2:8: error: "));
  EXPECT_THAT(text, testing::HasSubstr("  %0 = aten.relu(%x) : f32[3]\n         ^\n"));
  EXPECT_THAT(text, testing::HasSubstr("bad.cgir:3:8: error: "));
  EXPECT_THAT(text, testing::HasSubstr("bad.cgir:1:7: error: ")) << "no output: the graph";
  EXPECT_EQ(diagnostics.errors().size(), 3u) << text;
}

TEST(Verifier, TextThatIsRightComesBackVerified) {
  Diagnostics diagnostics;
  EXPECT_TRUE(parseAndVerify("graph @f(%x: f32[2]) { output %x }", "good.cgir", diagnostics));
  EXPECT_FALSE(diagnostics.hasErrors());
}

} // namespace
} // namespace cgc::ir
