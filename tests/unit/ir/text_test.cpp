// The text form: everything that a module can hold round-trips exactly, in the spelling of
// docs/ir.md.
#include "ir_test_util.h"

#include <bit>
#include <cmath>
#include <limits>

namespace cgc::ir {
namespace {

/// Checks that printing the module of `text` gives `text`: printed text is a fixed point.
void expectFixedPoint(const std::string &text) {
  auto module = parsed(text);
  EXPECT_EQ(toString(*module), text);
}

/// Returns a module whose one graph has these inputs and this body.
std::string withBody(const std::string &inputs, const std::string &body) {
  return "module @root {\n  graph @f(" + inputs + ") -> () {\n    " + body +
         "\n    output\n  }\n}\n";
}

TEST(Text, WholeModule) {
  expectFixedPoint(R"(module @CLIP class="open_clip.model.CLIP" {
  param @text_projection : f32[512,512]
  buffer @attn_mask : f32[77,77]
  const @c0 : i64[]
  attr training = false
  attr num_heads = 8
  attr "odd key" = ["a", 1.5, none]
  module @visual class="VisionTransformer" {
    param @weight : bf16[3]
    module @0 class="Empty" {
    }
    graph @forward(%x: f16[1,3,224,224], %y: dynamic) -> f16[1,3,224,224] {
      output %x
    }
  }
  graph @forward(%image: f32[1,3]) -> (image_features: f32[1,3], "text features": dynamic) {
    %0 = call_module @visual.forward(%image, 3) : dynamic
    output %image, %0
  }
  graph @empty() -> () {
    output
  }
}
)");
}

TEST(Text, PositionalAndNamedArguments) {
  expectFixedPoint(withBody("%x: f32[1,3,8,8], %w: f32[4,3,2,2], %b: f32[4]",
                            "%0 = aten.conv2d(%x, %w) : f32[1,4,7,7]\n"
                            "    %1 = aten.conv2d(%x, %w, %b) {stride=[2, 2]} : f32[1,4,4,4]\n"
                            "    %2 = aten.conv2d(%x, %w) {stride=[2, 2], groups=3} : dynamic"));
}

TEST(Text, DefaultsAreFilledInByTheParser) {
  auto module = parsed(
      withBody("%x: f32[1,3,8,8], %w: f32[4,3,2,2]", "%0 = aten.conv2d(%x, %w) : f32[1,4,7,7]"));
  const Node &conv = *std::next(module->findGraph("f")->begin(), 2);
  ASSERT_EQ(conv.args().size(), 7u);
  EXPECT_TRUE(conv.arg("bias").isNone());
  EXPECT_EQ(conv.arg("stride"), Arg::ints(std::vector<int64_t>{1, 1}));
  EXPECT_EQ(conv.arg("groups"), Arg(1));
}

TEST(Text, ADefaultWrittenOutIsLeftOutByThePrinter) {
  auto module = parsed(withBody("%x: f32[2]", "%0 = aten.add(%x, 1) {alpha=1} : f32[2]"));
  EXPECT_THAT(toString(*module), testing::HasSubstr("aten.add(%x, 1) : f32[2]"));
}

TEST(Text, AFloatIsNotItsIntDefault) {
  expectFixedPoint(withBody("%x: f32[2]", "%0 = aten.add(%x, 1) {alpha=1.0} : f32[2]"));
}

TEST(Text, ArgumentsInBracesMayComeInAnyOrder) {
  auto module = parsed(withBody("%x: f32[1,3,8,8], %w: f32[4,3,2,2]",
                                "%0 = aten.conv2d(%x, %w) {groups=3, stride=[2, 2]} : dynamic"));
  EXPECT_THAT(toString(*module), testing::HasSubstr("{stride=[2, 2], groups=3}"));
}

TEST(Text, NoneInTheMiddleStays) {
  expectFixedPoint(
      withBody("%x: f32[2,4], %b: f32[4]",
               "%0 = aten.layer_norm(%x, none, %b) {normalized_shape=[4], eps=1e-06} : f32[2,4]"));
}

TEST(Text, TensorLists) {
  expectFixedPoint(withBody("%a: f32[2], %b: f32[2]",
                            "%0 = aten.cat([%a, %b]) : f32[4]\n"
                            "    %1 = aten.index(%a, [none, %b]) : dynamic"));
}

TEST(Text, ValuesInBracesBeforeSpecialization) {
  expectFixedPoint(withBody("%x: dynamic", "%0 = aten.size(%x) {dim=0} : dynamic\n"
                                           "    %1 = aten.view(%x) {size=[%0, 50, -1]} : dynamic\n"
                                           "    %2 = prim.list([%0, 1, [2, %0]]) : dynamic\n"
                                           "    %3 = prim.getitem(%2, 0) : dynamic"));
}

TEST(Text, InPlaceOps) {
  expectFixedPoint(withBody("%x: f32[2]", "%0 = aten.relu_(%x) : f32[2]"));
  auto module = parsed(withBody("%x: f32[2]", "%0 = aten.relu_(%x) : f32[2]"));
  const Node &relu = *std::next(module->findGraph("f")->begin());
  EXPECT_TRUE(relu.is(OpKind::Relu));
  EXPECT_TRUE(relu.isInPlace());
}

TEST(Text, SeveralResults) {
  expectFixedPoint(withBody("%x: f32[4]", "%a, %b = aten.chunk(%x) {chunks=2} : f32[2], f32[2]\n"
                                          "    %c, %d = call_module @f(%x) : dynamic, f32[2]"));
}

TEST(Text, SeveralResultsMayHaveEachOthersProvisionalNames) {
  expectFixedPoint(withBody("%x: f32[4]", "%2, %1, %0 = aten.chunk(%x) {chunks=3} : dynamic, "
                                          "dynamic, dynamic"));
}

TEST(Text, CallsWithoutResults) {
  expectFixedPoint(withBody("%x: f32[4]", "call_module @f(%x)"));
}

TEST(Text, Fallback) {
  expectFixedPoint(withBody(
      "%x: f32[4]",
      R"(%0 = aten.fallback "aten::foo.bar(Tensor self, str s=\"a\") -> Tensor" (%x, [1, 2], "b", f16) : dynamic)"));
}

TEST(Text, LocationsAreKept) {
  expectFixedPoint(
      "module @root {\n"
      "  graph @f(%x: f32[2] loc(\"a.py\":3 \"m.0\"), %y: f32[2]) -> f32[2] {\n"
      "    %0 = aten.relu(%x) : f32[2] loc(\"dir/model.py\":918 \"visual.resblocks.0\")\n"
      "    %1 = aten.relu(%0) : f32[2] loc(\"\":0 \"only.module\")\n"
      "    %2 = get_attr @w : f32[2] loc(\"only_file.py\":1)\n"
      "    output %1 loc(\"a.py\":4)\n"
      "  }\n"
      "}\n");
}

TEST(Text, LocationsCanBeLeftOut) {
  auto module = parsed("graph @f(%x: f32[2] loc(\"a.py\":3)) { output %x loc(\"a.py\":4 \"m\") }");
  EXPECT_THAT(toString(*module), testing::HasSubstr("loc("));
  EXPECT_THAT(toString(*module, {.locations = false}), testing::Not(testing::HasSubstr("loc(")));
}

TEST(Text, TypesWithStridesAndDevices) {
  expectFixedPoint(withBody("%x: f32[2,3][1,2], %y: f16[2,3]@cuda, %z: bool[4][0]@cuda, %s: i64[]",
                            "%0 = get_attr @w : u8[0,7]"));
}

TEST(Text, NamesThatNeedQuotes) {
  expectFixedPoint(withBody("%\"a b\": f32[2], %x.1: f32[2], %007: f32[2]",
                            "%\"quote\\\"\\\\\" = aten.relu(%\"a b\") : f32[2]\n"
                            "    %\"tab\\t\\x01\" = aten.relu(%x.1) : f32[2]\n"
                            "    %0 = get_attr @\"a-b.w\" : f32[2]"));
}

/// Returns `constant` after a round trip as an attribute.
Arg throughText(Arg constant) {
  Module module("m", "");
  module.addAttribute({"a", std::move(constant)});
  return parsed(toString(module))->attributes().at(0).value;
}

TEST(Text, ConstantsKeepKindAndValue) {
  for (const Arg &constant :
       {Arg(), Arg(true), Arg(false), Arg(0), Arg(-5), Arg(std::numeric_limits<int64_t>::min()),
        Arg(std::numeric_limits<int64_t>::max()), Arg("f16"), Arg(""),
        Arg("a\n\"\\\t\x01\x7f\xc3\xa9;"), Arg("none"), Arg(DType::F16), Arg(DType::Bool),
        Arg(DeviceKind::Cuda), Arg(DeviceKind::Cpu), Arg(Arg::List{}),
        Arg(Arg::List{Arg(1), Arg(1.0), Arg(Arg::List{Arg("x")})})})
    EXPECT_EQ(throughText(constant), constant) << argText(constant);
}

TEST(Text, FloatsKeepEveryBit) {
  using Limits = std::numeric_limits<double>;
  for (double value : {0.0, -0.0, 1.0, -1.0, 1e-5, 0.1, 1.0 / 3, 1e300, 123456789.0, 1e16, 1e22,
                       Limits::max(), Limits::min(), Limits::denorm_min(), -Limits::denorm_min(),
                       Limits::infinity(), -Limits::infinity(), Limits::epsilon()}) {
    Arg back = throughText(Arg(value));
    ASSERT_TRUE(back.is<double>()) << value;
    EXPECT_EQ(std::bit_cast<uint64_t>(back.as<double>()), std::bit_cast<uint64_t>(value)) << value;
  }
  Arg nan = throughText(Arg(Limits::quiet_NaN()));
  ASSERT_TRUE(nan.is<double>());
  EXPECT_TRUE(std::isnan(nan.as<double>()));
}

TEST(Text, FloatsAreSpelledShort) {
  EXPECT_EQ(argText(Arg(1.0)), "1.0");
  EXPECT_EQ(argText(Arg(1e-5)), "1e-05");
  EXPECT_EQ(argText(Arg(0.125)), "0.125");
  EXPECT_EQ(argText(Arg(-std::numeric_limits<double>::infinity())), "-inf");
}

TEST(Text, StringsAreSpelledOnOneLine) {
  EXPECT_EQ(argText(Arg("a\n\t\"\\\x01")), R"("a\n\t\"\\\x01")");
}

TEST(Text, NegativeZeroIsNotTheDefaultZero) {
  expectFixedPoint(withBody(
      "%q: f32[1,1,4,4]",
      "%0 = aten.scaled_dot_product_attention(%q, %q, %q) {dropout_p=-0.0} : f32[1,1,4,4]"));
}

TEST(Text, GraphsAloneGetARoot) {
  auto module = parsed("; only graphs\n"
                       "graph @a(%x: f32[2]) { output %x }\n"
                       "graph @b() { output 1, none, [2, 3] }\n");
  EXPECT_EQ(module->name(), "root");
  EXPECT_EQ(module->graphs().size(), 2u);
  EXPECT_EQ(module->findGraph("a")->owner(), module.get());
  EXPECT_EQ(toString(*module->findGraph("b")),
            "graph @b() -> (dynamic, dynamic, dynamic) {\n  output 1, none, [2, 3]\n}\n");
}

TEST(Text, CommentsBlanksAndWrappedStatements) {
  auto module = parsed("\tgraph @f(%x: f32[ 2, 3 ], ; first\r\n"
                       "    %y: f32[2,3]\n  ) -> f32[2,3] { ; body\n\n"
                       "  %0 = aten.cat([%x,\n          %y]) {dim = 0} : f32[4,3] ; a \"comment\n"
                       "  output %x } ; the end");
  EXPECT_EQ(module->findGraph("f")->size(), 4u);
}

// ---- checkRoundTrip

TEST(CheckRoundTrip, OfWhatTextHoldsIsOk) {
  const Status status = checkRoundTrip(
      *parsed(withBody("%x: f32[1,3,8,8], %w: f32[4,3,2,2]",
                       "%0 = aten.conv2d(%x, %w) {stride=[2, 2]} : f32[1,4,4,4] loc(\"a.py\":3)")));
  EXPECT_TRUE(status.isOk()) << status.message();
}

/// Returns the status of checkRoundTrip for a module @m whose one node before the output is `op`
/// with `numArgs` arguments, %x and then none: fewer than its schema has, which can be printed but
/// not parsed.
Status roundTripOfMalformedCall(OpKind op, unsigned numArgs) {
  Module module("m", "");
  Graph &graph = *module.addGraph(std::make_unique<Graph>("f"));
  std::vector<Arg> args(numArgs);
  Value *x = graph.placeholder("x", Type(), Loc::unknown())->result();
  if (numArgs > 0)
    args[0] = Arg(x);
  graph.call(op, std::move(args), 1, Loc::unknown());
  graph.createOutput({}, Loc::unknown());
  return checkRoundTrip(module);
}

TEST(CheckRoundTrip, NamesTheLineThatDoesNotComeBack) {
  const Status status = roundTripOfMalformedCall(OpKind::Conv2d, 3);
  EXPECT_EQ(status.code(), Code::Failed);
  EXPECT_EQ(status.message(), "the text of module @m does not round-trip, which is a bug of cgc: "
                              "line 3\n"
                              "      %0 = aten.conv2d(%x, none, none) : dynamic\n"
                              "comes back as\n"
                              "      %0 = aten.conv2d(%x, none) : dynamic");
}

TEST(CheckRoundTrip, SaysWhatTheParserRefuses) {
  const Status status = roundTripOfMalformedCall(OpKind::Relu, 0);
  EXPECT_EQ(status.code(), Code::Failed);
  EXPECT_EQ(status.message(), "the text of module @m cannot be parsed, which is a bug of cgc:\n"
                              "printed:3:10: error: argument 'self' of aten.relu is missing\n"
                              "      %0 = aten.relu() : dynamic\n"
                              "           ^\n");
}

} // namespace
} // namespace cgc::ir
