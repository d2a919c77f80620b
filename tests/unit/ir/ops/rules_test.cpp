// Type rules: every rule accepts or refuses any arguments that pass checkArgs, without crashing;
// messages name the argument and the cause. tests/numerics/shape_rules_test.cpp compares the
// accepted results with LibTorch.
#include "ir/decompose.h"
#include "ir/graph.h"
#include "ir/op_def.h"
#include "ir/ops/view_rules.h"
#include "tests/unit/ir/ir_test_util.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <set>

namespace cgc::ir {
namespace {

constexpr int64_t kMostInt = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeastInt = std::numeric_limits<int64_t>::min();

/// Draws argument lists that checkArgs accepts: extreme numbers, unusual ranks, empty and huge
/// tensors.
class Fuzzer {
public:
  explicit Fuzzer(unsigned seed) : random_(seed) {
    for (const char *type : {"f32[]",
                             "f32[0]",
                             "f32[1]",
                             "f32[4]",
                             "f32[2,3]",
                             "f32[3,2][1,3]",
                             "f16[2,3,4]",
                             "i64[4]",
                             "i64[2,3]",
                             "i64[]",
                             "bool[2,3]",
                             "u8[3]",
                             "f32[2,4,8,8]",
                             "f32[4,4,3,3]",
                             "f32[0,4,8,8]",
                             "f32[1073741824,1073741824]",
                             "f32[1,2305843009213693951]",
                             "i64[1152921504606846975]",
                             "f32[4][0]",
                             "f32[1,1][4611686018427387904,2]",
                             "f32[0,4611686018427387904]",
                             "f32[8]",
                             "f32[24,8]"})
      values_.push_back(graph_.placeholder("t", *parseTensorType(type), Loc::unknown())->result());
  }

  Arg draw(const SchemaArg &schema) {
    bool optionalElements = schema.isList && schema.kind == ArgKind::Tensor;
    if (schema.isOptional && !optionalElements && pick(3) == 0)
      return {};
    if (schema.defaultValue && pick(3) == 0)
      return *schema.defaultValue;
    if (!schema.isList)
      return element(schema.kind);
    Arg::List list;
    for (size_t i = pick(6); i > 0; --i)
      list.push_back(schema.isOptional && optionalElements && pick(4) == 0 ? Arg()
                                                                           : element(schema.kind));
    return Arg(std::move(list));
  }

private:
  size_t pick(size_t n) { return random_() % n; }

  int64_t integer() {
    constexpr int64_t extremes[] = {kLeastInt,   kLeastInt + 1, -(1ll << 40), (1ll << 31),
                                    (1ll << 40), kMostInt - 1,  kMostInt};
    return pick(4) == 0 ? extremes[pick(7)] : static_cast<int64_t>(pick(12)) - 4;
  }

  Arg element(ArgKind kind) {
    constexpr double reals[] = {0.0,
                                0.5,
                                -2.5,
                                1e300,
                                -1e19,
                                std::numeric_limits<double>::infinity(),
                                std::numeric_limits<double>::quiet_NaN()};
    switch (kind) {
    case ArgKind::Tensor:
      return values_[pick(values_.size())];
    case ArgKind::TensorOrNumber:
      return pick(2) ? element(ArgKind::Tensor) : element(ArgKind::Number);
    case ArgKind::Number:
      return pick(3) == 0 ? Arg(reals[pick(7)]) : element(ArgKind::Int);
    case ArgKind::Int:
      return pick(10) == 0 ? Arg(pick(2) == 0) : Arg(integer());
    case ArgKind::Float:
      return reals[pick(7)];
    case ArgKind::Bool:
      return pick(2) == 0;
    case ArgKind::Str:
      return pick(2) ? "floor" : "";
    case ArgKind::DType:
      return static_cast<DType>(pick(kNumDTypes));
    case ArgKind::Device:
      return pick(2) ? DeviceKind::Cpu : DeviceKind::Cuda;
    case ArgKind::Any:
      return pick(2) ? Arg(integer()) : Arg::ints(Dims{integer(), integer()});
    }
    return {};
  }

  std::mt19937 random_;
  Graph graph_{"g"};
  std::vector<Value *> values_;
};

TEST(Rules, AreTotal) {
  Fuzzer fuzzer(1);
  for (unsigned i = 0; i < kNumOps; ++i) {
    auto op = static_cast<OpKind>(i);
    if (!opDef(op).infer)
      continue;
    for (int round = 0; round < 3000; ++round) {
      std::vector<Arg> args;
      for (const SchemaArg &schema : opSchema(op).args)
        args.push_back(fuzzer.draw(schema));
      auto results = inferResults(op, args, DeviceKind::Cpu);
      if (!results.isOk()) {
        EXPECT_FALSE(results.status().message().empty());
        continue;
      }
      if (!opSchema(op).listResult) {
        ASSERT_EQ(results->size(), opSchema(op).numResults) << opName(op).str();
      }
      for (const Inferred &result : *results) {
        ASSERT_EQ(result.type.sizes.size(), result.type.strides.size()) << opName(op).str();
        // The text form refuses types whose size overflows.
        EXPECT_TRUE(parseTensorType(toString(result.type)) == result.type)
            << opName(op).str() << " gives " << toString(result.type);
        EXPECT_GE(result.viewOffset.value_or(0), 0) << opName(op).str();
        EXPECT_TRUE(hasTrait(op, kView) || !result.viewOffset) << opName(op).str();
      }
    }
  }
}

TEST(Rules, EveryOpIsDocumented) {
  for (unsigned i = 0; i < kNumOps; ++i) {
    const OpDef &def = opDef(static_cast<OpKind>(i));
    std::string name = opName(static_cast<OpKind>(i)).str();
    EXPECT_GT(llvm::StringRef(def.doc).size(), 15u) << name;
    const auto op = static_cast<OpKind>(i);
    const bool isMarker = op == OpKind::PrimIf || op == OpKind::PrimElse ||
                          op == OpKind::PrimEndIf || op == OpKind::PrimRaise;
    EXPECT_TRUE(def.infer || def.evaluate || op == OpKind::Fallback || isMarker) << name;
    EXPECT_EQ((def.traits & kHost) != 0, !def.infer && (def.evaluate || isMarker)) << name;
  }
}

/// The results of the first two of these ops are those of a user's code, those of the others depend
/// on other ranks.
TEST(Rules, EveryOpOfCgcButTheseHasADefinition) {
  const std::set<OpKind> others = {OpKind::CgcLibraryOp,     OpKind::CgcHostCall,
                                   OpKind::CgcAllReduce,     OpKind::CgcAllGather,
                                   OpKind::CgcReduceScatter, OpKind::CgcBroadcast};
  for (unsigned i = 0; i < kNumOps; ++i) {
    const auto op = static_cast<OpKind>(i);
    if (opName(op).starts_with("cgc.") && !others.contains(op)) {
      EXPECT_TRUE(opDef(op).decompose) << opName(op).str();
    }
  }
}

/// Numerics compare these with LibTorch in f32, where a missing conversion is the same.
TEST(Rules, DefinitionsComputeIn32BitsFor16) {
  const auto module = parsed(R"(
graph @f(%g: f16[2,3], %x: f16[2,3], %s: f32[2,1], %w: f16[3], %c: f32[3], %gi: f16[2,3,4,4], %xi: f16[2,3,8,8]) {
  %0 = cgc.gelu_backward(%g, %x) : f16[2,3]
  %1 = cgc.gelu_backward(%g, %x) {approximate="tanh"} : f16[2,3]
  %2 = aten.rms_norm(%x, %w) {normalized_shape=[3]} : f16[2,3]
  %3, %4, %5 = cgc.layer_norm_backward(%g, %x, %s, %s, %w, %w) {normalized_shape=[3]} : f16[2,3], f16[3], f16[3]
  %6, %7, %8 = cgc.layer_norm_statistics(%x, %w, %w) {normalized_shape=[3], eps=1e-05} : f16[2,3], f32[2,1], f32[2,1]
  %9, %10, %11 = cgc.batch_norm_train(%xi, %c, %c, none, none) {momentum=0.1, eps=1e-05} : f16[2,3,8,8], f32[3], f32[3]
  %12, %13, %14 = cgc.batch_norm_backward(%xi, %xi, %c, %c, %c) {eps=1e-05} : f16[2,3,8,8], f32[3], f32[3]
  %15 = cgc.avg_pool2d_backward(%gi, %xi) {kernel_size=[2], stride=[], padding=[0], ceil_mode=false, count_include_pad=true, divisor_override=none} : f16[2,3,8,8]
  output %0
})");
  unsigned definitions = 0;
  for (const Node &node : *module->graphs()[0]) {
    if (node.kind() != NodeKind::CallFunction)
      continue;
    const Result<Definition> definition = definitionOf(node);
    ASSERT_TRUE(definition.isOk()) << toString(node) << definition.status().message();
    ++definitions;
    for (const Node &inner : *definition->graph) {
      if (inner.kind() != NodeKind::CallFunction || inner.is(OpKind::To) ||
          !(hasTrait(inner.op(), kPointwise) || hasTrait(inner.op(), kReduction)))
        continue;
      for (const Value &result : inner.results())
        EXPECT_NE(result.tensor().dtype, DType::F16) << toString(node) << "\n  " << toString(inner);
    }
  }
  EXPECT_EQ(definitions, 8u);
}

TEST(Rules, AListThatIsAValueIsRefused) {
  Graph graph("g");
  Value *x = graph.placeholder("x", *parseTensorType("f32[2]"), Loc::unknown())->result();
  auto result = inferResults(OpKind::Cat, {Arg(x), Arg(0)}, DeviceKind::Cpu);
  ASSERT_FALSE(result.isOk());
  EXPECT_EQ(result.status().message(), "argument 'tensors' is not known at compile time (%x)");
}

TEST(Rules, ResultsAreOnTheGivenDevice) {
  Graph graph("g");
  Value *x = graph.placeholder("x", *parseTensorType("f32[2]@cuda"), Loc::unknown())->result();
  auto to = inferResults(OpKind::To, {Arg(x), Arg(), Arg(DeviceKind::Cuda)}, DeviceKind::Cuda);
  ASSERT_TRUE(to.isOk());
  EXPECT_EQ(toString((*to)[0].type), "f32[2]@cuda");
  EXPECT_EQ((*to)[0].viewOffset, 0);
  auto copied = inferResults(OpKind::To, {Arg(x), Arg(), Arg(DeviceKind::Cpu)}, DeviceKind::Cpu);
  ASSERT_TRUE(copied.isOk());
  EXPECT_FALSE((*copied)[0].viewOffset);
}

TEST(Rules, PartsOfADimensionHaveOffsets) {
  Graph graph("g");
  Value *x = graph.placeholder("x", *parseTensorType("f32[2,5]"), Loc::unknown())->result();
  auto parts = inferResults(OpKind::Chunk, {Arg(x), Arg(3), Arg(1)}, DeviceKind::Cpu);
  ASSERT_TRUE(parts.isOk());
  std::vector<int64_t> offsets;
  for (const Inferred &part : *parts)
    offsets.push_back(*part.viewOffset);
  EXPECT_THAT(offsets, ::testing::ElementsAre(0, 2, 4));
}

TEST(Rules, MoreResultsThanAnyModelHasAreRefused) {
  Graph graph("g");
  Value *x = graph.placeholder("x", *parseTensorType("u8[1000000]"), Loc::unknown())->result();
  auto result = inferResults(OpKind::Unbind, {Arg(x), Arg(0)}, DeviceKind::Cpu);
  ASSERT_FALSE(result.isOk());
  EXPECT_THAT(result.status().message(), ::testing::HasSubstr("1000000 results"));
}

TEST(Definitions, OfPoolsOfIntegersAreRefused) {
  Graph graph("g");
  const TensorType type = TensorType::dense(DType::I64, {1, 1, 4, 4});
  Value *x = graph.placeholder("x", type, Loc::unknown())->result();
  Node *pool = graph.call(
      OpKind::CgcMaxPool2dIndices,
      {x, Arg::ints(Dims{2}), Arg::ints(Dims{}), Arg::ints(Dims{1}), Arg::ints(Dims{1}), false}, 2,
      Loc::unknown());
  const auto results = inferResults(pool->op(), pool->args(), DeviceKind::Cpu);
  ASSERT_TRUE(results) << results.status().message();
  for (unsigned i = 0; i < 2; ++i)
    pool->result(i)->setType((*results)[i].type);
  graph.createOutput({pool->result(0), pool->result(1)}, Loc::unknown());
  EXPECT_THAT(definitionOf(*pool).status().message(), testing::HasSubstr("integers have no -inf"));
}

} // namespace
} // namespace cgc::ir
