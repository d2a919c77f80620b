// checkAtenValues: validate() refuses dangerous values of ATen arguments and accepts others.
#include "runtime/plan/plan_file.h"
#include "tests/unit/runtime/sample_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace cgc::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using Ints = std::vector<int64_t>;
using Shapes = std::vector<std::vector<int64_t>>;

/// The message of validate() for a plan with one call; empty if it is valid. The tensors t0, t1,
/// ... are f32 inputs of these sizes; the last one is the output, or with `outputStrides` a tensor
/// of the arena. t0 has `inputStrides`, or is dense without them.
std::string refusal(const Shapes &shapes, AtenCall call, DType dtype = DType::F32,
                    std::vector<int64_t> outputStrides = {},
                    std::vector<int64_t> inputStrides = {}) {
  PlanData plan;
  plan.target = DeviceKind::Cpu;
  plan.producer = "test";
  Bucket bucket;
  for (uint32_t i = 0; i < shapes.size(); ++i) {
    const bool isOutput = i + 1 == shapes.size();
    auto &list = isOutput ? bucket.outputs : bucket.inputs;
    const DType type = i == 1 ? dtype : DType::F32;
    bucket.tensors.push_back(dense(isOutput ? BufferKind::Output : BufferKind::Input,
                                   uint32_t(list.size()), 0, type, shapes[i]));
    list.push_back({.name = "t" + std::to_string(i), .dtype = type, .sizes = shapes[i]});
  }
  if (!inputStrides.empty())
    bucket.tensors[0].strides = std::move(inputStrides);
  if (!outputStrides.empty()) {
    // A view of the arena.
    bucket.arenaBytes = 4096;
    bucket.tensors.push_back(dense(BufferKind::Arena, 0, 0, DType::F32, shapes.back()));
    bucket.tensors.back().strides = std::move(outputStrides);
    call.outputs.push_back(id(uint32_t(shapes.size())));
  }
  if (call.outputs.empty())
    call.outputs = {id(uint32_t(shapes.size() - 1))};
  bucket.records = {{std::move(call)}};
  plan.entries = {{.name = "main", .buckets = {std::move(bucket)}}};
  return validate(plan).message();
}

AtenCall batchNorm(AtenArg training) {
  return {"aten::batch_norm",
          "",
          {id(0), id(1), id(1), id(1), id(1), std::move(training), 0.1, 1e-5, true},
          {}};
}

TEST(AtenValues, BatchNormDoesNotTrain) {
  const Shapes shapes = {{2, 3, 4, 4}, {3}, {2, 3, 4, 4}};
  EXPECT_EQ(refusal(shapes, batchNorm(false)), "");
  EXPECT_THAT(refusal(shapes, batchNorm(true)), HasSubstr("'training' has to be false"));
  EXPECT_THAT(refusal(shapes, batchNorm(int64_t{1})), HasSubstr("'training' has to be false"));
  AtenCall other = batchNorm(false);
  other.overload = "else";
  EXPECT_THAT(refusal(shapes, other), HasSubstr("does not know its overload"));
}

TEST(AtenValues, ResamplingScalesKeepCoordinatesInTheImage) {
  const auto call = [](AtenArg scale) {
    return AtenCall{"aten::upsample_nearest2d",
                    "out",
                    {id(0), std::vector<int64_t>{8, 8}, std::move(scale), NoneArg{}},
                    {}};
  };
  const Shapes shapes = {{1, 3, 4, 4}, {1, 3, 8, 8}};
  EXPECT_EQ(refusal(shapes, call(NoneArg{})), "");
  EXPECT_EQ(refusal(shapes, call(2.0)), "");
  for (double scale : {1e-300, 1e300, 0.0, -2.0, std::nan("")})
    EXPECT_THAT(refusal(shapes, call(scale)), HasSubstr("between 2^-20 and 2^20")) << scale;
  EXPECT_THAT(refusal({{1, 3, 4, 4}, {1, 3, 8, 9}}, call(2.0)), HasSubstr("its result is"));
}

TEST(AtenValues, ConvolutionsOfOneDimensionAndTransposedOnesDivideByNoZero) {
  const auto flat = [](int64_t stride, int64_t groups) {
    return AtenCall{"aten::conv1d",
                    "",
                    {id(0), id(1), NoneArg{}, std::vector<int64_t>{stride}, std::vector<int64_t>{0},
                     std::vector<int64_t>{1}, groups},
                    {}};
  };
  const Shapes lines = {{2, 4, 9}, {6, 4, 3}, {2, 6, 7}};
  EXPECT_EQ(refusal(lines, flat(1, 1)), "");
  EXPECT_THAT(refusal(lines, flat(0, 1)), HasSubstr("out of range"));
  EXPECT_THAT(refusal(lines, flat(1, 0)), HasSubstr("number of groups"));
  const auto transposed = [](int64_t stride, int64_t groups) {
    const std::vector<int64_t> none = {0, 0}, one = {1, 1};
    return AtenCall{
        "aten::conv_transpose2d",
        "input",
        {id(0), id(1), NoneArg{}, std::vector<int64_t>{stride, 2}, none, none, groups, one},
        {}};
  };
  const Shapes images = {{1, 4, 5, 6}, {4, 3, 2, 2}, {1, 3, 10, 12}};
  EXPECT_EQ(refusal(images, transposed(2, 1)), "");
  EXPECT_THAT(refusal(images, transposed(0, 1)), HasSubstr("out of range"));
  EXPECT_THAT(refusal(images, transposed(2, 0)), HasSubstr("number of groups"));
  EXPECT_THAT(refusal(images, transposed(3, 1)), HasSubstr("its result is"));
}

TEST(AtenValues, ResultsWhoseStridesLibTorchIgnoresAreDense) {
  const Shapes shapes = {{4, 5}, {4, 5}};
  const AtenCall softmax{"aten::_softmax", "out", {id(0), int64_t{1}, false}, {}};
  const AtenCall gelu{"aten::gelu", "out", {id(0), std::string("none")}, {}};
  const AtenCall tanh{"aten::tanh", "out", {id(0)}, {}};
  for (const AtenCall &call : {softmax, gelu}) {
    EXPECT_THAT(refusal(shapes, call), Not(HasSubstr("dense"))) << call.op;
    EXPECT_THAT(refusal(shapes, call, DType::F32, {8, 1}), HasSubstr("has to be dense")) << call.op;
    EXPECT_THAT(refusal(shapes, call, DType::F32, {1, 4}), HasSubstr("has to be dense")) << call.op;
  }
  EXPECT_THAT(refusal(shapes, tanh, DType::F32, {8, 1}), Not(HasSubstr("dense")));
}

TEST(AtenValues, NativeAttentionHasHeadsAndOneElementType) {
  const Shapes shapes = {{2, 3, 4}, {12}, {12, 4}, {4, 4}, {4}, {2, 3, 4}};
  const auto call = [](int64_t heads) {
    return AtenCall{"aten::_native_multi_head_attention",
                    "",
                    {id(0), id(0), id(0), int64_t{4}, heads, id(2), id(1), id(3), id(4), NoneArg{},
                     false, true, NoneArg{}},
                    {id(5), kNoTensor}};
  };
  EXPECT_EQ(refusal(shapes, call(2)), "");
  EXPECT_THAT(refusal(shapes, call(0)), HasSubstr("'num_head' has to be at least 1"));
  EXPECT_THAT(refusal(shapes, call(-2)), HasSubstr("'num_head' has to be at least 1"));
  EXPECT_THAT(refusal(shapes, call(2), DType::I8), HasSubstr("of one element type"));
  // Each of its tensors is held against the others.
  for (const size_t argument : {0, 1, 2, 5, 6, 7, 8}) {
    AtenCall mixed = call(2);
    mixed.args[6] = mixed.args[5];
    mixed.args[argument] = id(1);
    EXPECT_THAT(refusal(shapes, mixed, DType::I8), HasSubstr("of one element type")) << argument;
  }
}

TEST(AtenValues, AttentionHasAValueForEachKey) {
  const auto call = [](bool grouped) {
    return AtenCall{"aten::scaled_dot_product_attention",
                    "",
                    {id(0), id(1), id(2), NoneArg{}, 0.0, false, NoneArg{}, grouped},
                    {}};
  };
  EXPECT_EQ(refusal({{2, 4, 3, 8}, {2, 4, 5, 8}, {2, 4, 5, 6}, {2, 4, 3, 6}}, call(false)), "");
  EXPECT_EQ(refusal({{2, 4, 3, 8}, {2, 2, 5, 8}, {2, 2, 5, 6}, {2, 4, 3, 6}}, call(true)), "");
  EXPECT_EQ(refusal({{2, 4, 3, 8}, {2, 4, 0, 8}, {2, 4, 0, 6}, {2, 4, 3, 6}}, call(false)), "");
  EXPECT_EQ(refusal({{3, 8}, {2, 5, 8}, {5, 6}, {2, 3, 6}}, call(false)), "");
  EXPECT_EQ(refusal({{0, 4, 3, 8}, {0, 4, 5, 8}, {0, 4, 5, 6}, {0, 4, 3, 6}}, call(false)), "");
  EXPECT_EQ(refusal({{2, 4, 0, 8}, {2, 4, 5, 8}, {2, 4, 5, 6}, {2, 4, 0, 6}}, call(false)), "");
  EXPECT_THAT(refusal({{2, 0, 3, 8}, {2, 0, 5, 8}, {2, 0, 5, 6}, {2, 0, 3, 6}}, call(false)),
              HasSubstr("have to have a head"));
  for (const Shapes &shapes : {Shapes{{2, 4, 3, 8}, {2, 4, 1, 8}, {2, 4, 3, 8}, {2, 4, 3, 8}},
                               Shapes{{2, 4, 3, 8}, {2, 4, 3, 8}, {2, 4, 0, 8}, {2, 4, 3, 8}}})
    EXPECT_THAT(refusal(shapes, call(false)), HasSubstr("the same number of rows"));
  EXPECT_THAT(refusal({{2, 4, 3, 8}, {2, 3, 5, 8}, {2, 3, 5, 8}, {2, 4, 3, 8}}, call(true)),
              HasSubstr("has to divide"));
  EXPECT_THAT(refusal({{2, 4, 3, 8}, {2, 0, 5, 8}, {2, 0, 5, 8}, {2, 4, 3, 8}}, call(true)),
              HasSubstr("have to have a head"));
  EXPECT_THAT(refusal({{8}, {5, 8}, {5, 6}, {6}}, call(false)), HasSubstr("matrices"));
  EXPECT_THAT(
      refusal({{2, 4, 3, 8}, {2, 4, 5, 8}, {2, 4, 5, 8}, {2, 4, 3, 8}}, call(false), DType::F16),
      HasSubstr("matrices of one element type"));
  EXPECT_THAT(refusal({{9, 1, 3, 8}, {1, 9, 5, 8}, {1, 9, 5, 8}, {9, 1, 3, 8}}, call(false)),
              HasSubstr("its result is [9,9,3,8]"));
}

TEST(AtenValues, AttentionHasAQueryWithoutOverlaps) {
  const Shapes shapes = {{2, 4, 3, 8}, {2, 4, 5, 8}, {2, 4, 5, 8}, {2, 4, 3, 8}};
  const AtenCall call = {"aten::scaled_dot_product_attention",
                         "",
                         {id(0), id(1), id(2), NoneArg{}, 0.0, false, NoneArg{}, false},
                         {}};
  for (const Ints &strides : {Ints{96, 8, 32, 1}, Ints{0, 24, 8, 1}, Ints{0, 0, 0, 1},
                              Ints{1, 2, 8, 24}, Ints{2, 24, 8, 1}})
    EXPECT_EQ(refusal(shapes, call, DType::F32, {}, strides), "");
  for (const Ints &strides : {Ints{1, 24, 8, 1}, Ints{96, 1, 8, 1}, Ints{96, 24, 1, 1}})
    EXPECT_THAT(refusal(shapes, call, DType::F32, {}, strides), HasSubstr("overlap"));
  const Shapes one = {{1, 4, 3, 8}, {1, 4, 5, 8}, {1, 4, 5, 8}, {1, 4, 3, 8}};
  EXPECT_EQ(refusal(one, call, DType::F32, {}, {1, 24, 8, 1}), "");
}

TEST(AtenValues, AttentionHasNoDropout) {
  const auto call = [](AtenArg dropout) {
    return AtenCall{"aten::scaled_dot_product_attention",
                    "",
                    {id(0), id(1), id(2), NoneArg{}, std::move(dropout), false, NoneArg{}, false},
                    {}};
  };
  const Shapes shapes = {{2, 3, 8}, {2, 5, 8}, {2, 5, 6}, {2, 3, 6}};
  EXPECT_EQ(refusal(shapes, call(0.0)), "");
  EXPECT_THAT(refusal(shapes, call(0.5)), HasSubstr("'dropout_p' has to be 0"));
}

/// The op has `dropout_mask` before `scale`.
TEST(AtenValues, TheDefinitionOfAttentionIsCheckedAsAttention) {
  const auto call = [](double dropout, bool grouped) {
    return AtenCall{"aten::_scaled_dot_product_attention_math",
                    "",
                    {id(0), id(1), id(2), NoneArg{}, dropout, false, NoneArg{}, NoneArg{}, grouped},
                    {id(3), kNoTensor}};
  };
  const Shapes same = {{2, 4, 3, 8}, {2, 4, 5, 8}, {2, 4, 5, 6}, {2, 4, 3, 6}},
               shared = {{2, 4, 3, 8}, {2, 2, 5, 8}, {2, 2, 5, 6}, {2, 4, 3, 6}};
  EXPECT_EQ(refusal(same, call(0, false)), "");
  EXPECT_EQ(refusal(shared, call(0, true)), "");
  EXPECT_THAT(refusal(shared, call(0, false)), HasSubstr("do not broadcast"));
  EXPECT_THAT(refusal(same, call(0.5, false)), HasSubstr("'dropout_p' has to be 0"));
}

TEST(AtenValues, ArangeHasTheElementsOfThePlan) {
  const auto arange = [](const char *overload, std::vector<AtenArg> args) {
    const bool writes = std::string_view(overload).ends_with("out");
    return AtenCall{"aten::arange", overload, std::move(args), {}, writes};
  };
  const Shapes seven = {{1}, {7}};
  EXPECT_EQ(refusal(seven, arange("out", {int64_t{7}})), "");
  EXPECT_EQ(refusal(seven, arange("start", {int64_t{1}, 7.5})), "");
  EXPECT_EQ(refusal(seven, arange("start_step", {int64_t{0}, int64_t{14}, int64_t{2}})), "");
  EXPECT_EQ(refusal(seven, arange("start_out", {int64_t{7}, int64_t{0}, int64_t{-1}})), "");
  EXPECT_THAT(refusal(seven, arange("start", {int64_t{0}, int64_t{1} << 40})),
              HasSubstr("its result is [1099511627776], and the plan has a tensor of [7]"));
  for (const AtenArg &step : {AtenArg(int64_t{0}), AtenArg(-1.0), AtenArg(1e-300)})
    EXPECT_THAT(refusal(seven, arange("start_step", {int64_t{0}, int64_t{7}, step})),
                HasSubstr("negative or too large"));
  EXPECT_THAT(refusal(seven, arange("start", {int64_t{0}, true})), HasSubstr("numbers"));
}

TEST(AtenValues, PaddingAndPoolsGiveTheResultOfThePlan) {
  const auto pad = [](Ints by) {
    return AtenCall{"aten::constant_pad_nd", "", {id(0), std::move(by), int64_t{0}}, {}};
  };
  EXPECT_EQ(refusal({{2, 3}, {3, 6}}, pad({1, 2, 2, -1})), "");
  EXPECT_THAT(refusal({{2, 3}, {3, 6}}, pad({0, int64_t{1} << 40})), HasSubstr("its result is"));
  EXPECT_THAT(refusal({{2, 3}, {3, 6}}, pad({INT64_MAX, 0})), HasSubstr("'pad' is too large"));
  EXPECT_THAT(refusal({{2, 3}, {3, 6}}, pad({1})), HasSubstr("two numbers"));
  EXPECT_THAT(refusal({{2, 3}, {3, 6}}, pad({1, 1, 1, 1, 1, 1})), HasSubstr("two numbers"));
  const auto pool = [](Ints size) {
    return AtenCall{"aten::adaptive_avg_pool2d", "", {id(0), std::move(size)}, {}};
  };
  EXPECT_EQ(refusal({{2, 3, 5, 5}, {2, 3, 1, 2}}, pool({1, 2})), "");
  EXPECT_THAT(refusal({{2, 3, 5, 5}, {2, 3, 1, 2}}, pool({1 << 20, 1 << 20})),
              HasSubstr("its result is [2,3,1048576,1048576]"));
  EXPECT_THAT(refusal({{2, 3, 5, 5}, {2, 3, 1, 2}}, pool({})), HasSubstr("'output_size'"));
  EXPECT_THAT(refusal({{5}, {2}}, pool({1, 2})), HasSubstr("fewer dimensions"));
}

TEST(AtenValues, ConvolutionsHaveWindows) {
  const auto convolve = [](Ints stride, Ints padding, Ints dilation, int64_t groups) {
    return AtenCall{"aten::conv2d",
                    "",
                    {id(0), id(1), NoneArg{}, std::move(stride), std::move(padding),
                     std::move(dilation), groups},
                    {}};
  };
  const Shapes shapes = {{2, 4, 9, 7}, {6, 2, 3, 3}, {2, 6, 5, 3}};
  EXPECT_EQ(refusal(shapes, convolve({2, 2}, {1, 0}, {1, 1}, 2)), "");
  EXPECT_EQ(refusal({{4, 9, 7}, {6, 4, 3, 3}, {6, 9, 7}}, convolve({1}, {1}, {1}, 1)), "");
  const int64_t huge = int64_t{1} << 62;
  for (const AtenCall &call :
       {convolve({0, 2}, {1, 0}, {1, 1}, 2), convolve({2, 2}, {-1, 0}, {1, 1}, 2),
        convolve({2, 2}, {1, 0}, {1, 0}, 2), convolve({2, 2}, {huge, 0}, {1, 1}, 2),
        convolve({2, 2}, {1, 0}, {1, huge}, 2), convolve({2, 2}, {1, 0}, {9, 1}, 2)})
    EXPECT_THAT(refusal(shapes, call), HasSubstr("out of range"));
  EXPECT_THAT(refusal(shapes, convolve({2, 2}, {1 << 20, 0}, {1, 1}, 2)),
              HasSubstr("its result is [2,6,"));
  EXPECT_THAT(refusal(shapes, convolve({2, 2}, {1, 0}, {1, 1}, 0)), HasSubstr("groups is none"));
  for (const Shapes &ranks :
       {Shapes{{9, 7}, {6, 2, 3, 3}, {9, 7}}, Shapes{{2, 4, 9, 7}, {6, 2, 3}, {2, 6, 5, 3}}})
    EXPECT_THAT(refusal(ranks, convolve({1}, {1}, {1}, 1)), HasSubstr("image, weight"));
}

TEST(AtenValues, ElementsBroadcastToTheResultOfThePlan) {
  const AtenCall divide{"aten::floor_divide", "", {id(0), id(1)}, {}};
  EXPECT_EQ(refusal({{3, 1}, {4}, {3, 4}}, divide), "");
  EXPECT_THAT(refusal({{1000, 1}, {1, 1000}, {1000}}, divide),
              HasSubstr("its result is [1000,1000]"));
  EXPECT_THAT(refusal({{3}, {4}, {3}}, divide), HasSubstr("do not broadcast"));
  const AtenCall where{"aten::where", "self", {id(1), id(0), id(0)}, {}};
  EXPECT_EQ(refusal({{3, 1}, {4}, {3, 4}}, where, DType::Bool), "");
  EXPECT_THAT(refusal({{3}, {4}, {3, 4}}, {"aten::where", "", {id(1)}, {}}, DType::Bool),
              HasSubstr("that the data decide"));
}

TEST(AtenValues, IndicesSelectTheResultOfThePlan) {
  const auto select = [](int64_t dim) {
    return AtenCall{"aten::index_select", "", {id(0), dim, id(1)}, {}};
  };
  const Shapes shapes = {{5, 3}, {7}, {7, 3}};
  for (const int64_t dim : {0, -2})
    EXPECT_EQ(refusal(shapes, select(dim), DType::I64), "");
  EXPECT_THAT(refusal(shapes, select(1), DType::I64), HasSubstr("its result is [5,7]"));
  for (const int64_t dim : {2, -3})
    EXPECT_THAT(refusal(shapes, select(dim), DType::I64), HasSubstr("does not exist"));
  EXPECT_THAT(refusal({{5, 3}, {7, 2}, {7, 3}}, select(0), DType::I64), HasSubstr("is no list"));
  EXPECT_EQ(refusal({{}, {1}, {}}, select(0), DType::I64), "");
}

TEST(AtenValues, IndicesAreIntegersAndKeepTheSizesOfTheTensor) {
  const AtenCall put{
      "aten::index_put", "", {id(0), std::vector{kNoTensor, id(1)}, id(0), false}, {}};
  const Shapes shapes = {{5, 3}, {7}, {5, 3}};
  EXPECT_EQ(refusal(shapes, put, DType::I64), "");
  EXPECT_THAT(refusal(shapes, put, DType::Bool), HasSubstr("depends on data"));
  EXPECT_THAT(refusal({{5, 3}, {7}, {5, 7}}, put, DType::I64), HasSubstr("its result is [5,3]"));
  const AtenCall scatter{"aten::masked_scatter", "", {id(0), id(1), id(0)}, {}};
  EXPECT_EQ(refusal({{5, 3}, {3}, {5, 3}}, scatter, DType::Bool), "");
  EXPECT_THAT(refusal({{5, 3}, {3}, {5, 3}}, scatter, DType::U8), HasSubstr("tensor of bools"));
  EXPECT_THAT(refusal({{5, 3}, {4}, {5, 3}}, scatter, DType::Bool), HasSubstr("do not broadcast"));
  const AtenCall reduce{"aten::scatter_reduce",
                        "two",
                        {id(0), int64_t{0}, id(1), id(0), std::string("sum"), true},
                        {}};
  EXPECT_THAT(refusal({{5, 3}, {5, 3}, {5}}, reduce, DType::I64), HasSubstr("its result is [5,3]"));
}

TEST(AtenValues, PoolsOfVolumesHaveTheResultOfThePlan) {
  const auto pool = [](Ints kernel, Ints stride, Ints padding, bool ceilMode) {
    return AtenCall{"aten::avg_pool3d",
                    "",
                    {id(0), std::move(kernel), std::move(stride), std::move(padding), ceilMode,
                     true, NoneArg{}},
                    {}};
  };
  EXPECT_EQ(refusal({{2, 8, 7, 6}, {2, 4, 3, 3}}, pool({2}, {}, {0}, false)), "");
  EXPECT_EQ(refusal({{2, 8, 7, 6}, {2, 4, 4, 3}}, pool({2}, {2, 2, 2}, {0}, true)), "");
  // A window that would begin behind the image, or directly behind it, does not count.
  EXPECT_EQ(refusal({{2, 8, 7, 6}, {2, 3, 3, 2}}, pool({1}, {3}, {0}, true)), "");
  EXPECT_THAT(refusal({{2, 8, 7, 6}, {2, 9, 9, 9}}, pool({2}, {}, {0}, false)),
              HasSubstr("its result is [2,4,3,3]"));
  for (const auto &[kernel, stride, padding] : {std::tuple(Ints{0}, Ints{}, Ints{0}),
                                                {Ints{2}, Ints{0}, Ints{0}},
                                                {Ints{2}, Ints{}, Ints{-1}},
                                                {Ints{9}, Ints{}, Ints{0}},
                                                {Ints{2, 2}, Ints{}, Ints{0}}})
    EXPECT_THAT(refusal({{2, 8, 7, 6}, {2, 4, 3, 3}}, pool(kernel, stride, padding, false)),
                HasSubstr("out of range"));
  EXPECT_THAT(
      refusal({{2, 8, 7, 6}, {2, 4, 3, 3}}, pool({2}, {}, {0}, false), DType::F32, {1, 2, 8, 24}),
      HasSubstr("has to be dense"));
  // Its second result, the indices, too.
  const AtenCall withIndices{"aten::max_pool3d_with_indices",
                             "",
                             {id(0), Ints{2}, Ints{}, Ints{0}, Ints{1}, false},
                             {id(1)}};
  const auto refusalOf = [&](const Ints &strides) {
    return refusal({{2, 8, 7, 6}, {2, 4, 3, 3}}, withIndices, DType::F32, strides);
  };
  EXPECT_EQ(refusalOf({36, 9, 3, 1}), "");
  EXPECT_THAT(refusalOf({1, 2, 8, 24}), HasSubstr("has to be dense"));
}

TEST(AtenValues, SamplesLieInTheImage) {
  const auto resample = [](AtenArg scale) {
    return AtenCall{
        "aten::_upsample_bilinear2d_aa", "", {id(0), Ints{4, 4}, false, scale, scale}, {}};
  };
  const Shapes shapes = {{1, 2, 8, 8}, {1, 2, 4, 4}};
  EXPECT_EQ(refusal(shapes, resample(NoneArg{})), "");
  EXPECT_EQ(refusal(shapes, resample(0.5)), "");
  EXPECT_THAT(refusal(shapes, resample(0.25)), HasSubstr("outside of its image"));
  const auto sample = [](int64_t mode, int64_t padding) {
    return AtenCall{"aten::grid_sampler_2d", "", {id(0), id(1), mode, padding, false}, {}};
  };
  const Shapes grid = {{1, 2, 8, 8}, {1, 3, 4, 2}, {1, 2, 3, 4}};
  EXPECT_EQ(refusal(grid, sample(2, 2)), "");
  for (const auto &[mode, padding] : {std::pair(3, 0), std::pair(0, -1)})
    EXPECT_THAT(refusal(grid, sample(mode, padding)), HasSubstr("modes have to be"));
}

TEST(AtenValues, ColumnsAreTheWindowsOfTheImage) {
  const Ints one = {1, 1}, none = {0, 0}, two = {2, 2};
  const AtenCall columns{"aten::im2col", "", {id(0), two, one, none, one}, {}};
  EXPECT_EQ(refusal({{2, 3, 4, 5}, {2, 12, 12}}, columns), "");
  EXPECT_THAT(refusal({{2, 3, 4, 5}, {2, 12, 20}}, columns), HasSubstr("its result is [2,12,12]"));
  EXPECT_THAT(refusal({{2, 3, 1, 5}, {2, 12, 12}}, columns), HasSubstr("out of range"));
  const AtenCall image{"aten::col2im", "", {id(0), Ints{4, 5}, two, one, none, one}, {}};
  EXPECT_EQ(refusal({{2, 12, 12}, {2, 3, 4, 5}}, image), "");
  EXPECT_THAT(refusal({{2, 12, 13}, {2, 3, 4, 5}}, image), HasSubstr("are not the windows"));
}

TEST(AtenValues, DistancesHaveTheResultOfThePlan) {
  const AtenCall distances{"aten::cdist", "", {id(0), id(1), 2.0, NoneArg{}}, {}};
  EXPECT_EQ(refusal({{2, 3, 4}, {5, 4}, {2, 3, 5}}, distances), "");
  EXPECT_THAT(refusal({{2, 3, 4}, {5, 4}, {2, 3}}, distances), HasSubstr("its result is [2,3,5]"));
  EXPECT_THAT(refusal({{2, 3, 4}, {5, 3}, {2, 3, 5}}, distances), HasSubstr("as many columns"));
  EXPECT_THAT(refusal({{5, 3}, {9}}, {"aten::pdist", "", {id(0), 2.0}, {}}),
              HasSubstr("its result is [10]"));
}

TEST(AtenValues, TrainedBatchNormHasAParameterForEachChannel) {
  const auto functional = [](AtenArg runningVar) {
    return AtenCall{"aten::_native_batch_norm_legit_functional",
                    "",
                    {id(0), NoneArg{}, id(1), id(1), std::move(runningVar), true, 0.1, 1e-5},
                    {}};
  };
  const Shapes shapes = {{2, 3, 4}, {3}, {2}, {2, 3, 4}};
  EXPECT_EQ(refusal(shapes, functional(id(1))), "");
  EXPECT_THAT(refusal(shapes, functional(NoneArg{})), HasSubstr("running statistics are none"));
  EXPECT_THAT(refusal(shapes, functional(id(2))), HasSubstr("an element for each channel"));
  EXPECT_THAT(refusal({{2, 0}, {0}, {2}, {2, 0}}, functional(id(1))), HasSubstr("no channels"));
  AtenCall batch = {
      "aten::_native_batch_norm_legit", "no_stats", {id(0), id(1), NoneArg{}, true, 0.1, 1e-5}, {}};
  EXPECT_EQ(refusal(shapes, batch), "");
  batch.args[1] = id(2);
  EXPECT_THAT(refusal(shapes, batch), HasSubstr("an element for each channel"));
  batch.args[3] = false; // LibTorch would read running statistics, which there are not.
  EXPECT_THAT(refusal(shapes, batch), HasSubstr("'training' has to be true"));
  batch.overload = ""; // It would write its running statistics.
  EXPECT_THAT(refusal(shapes, batch), HasSubstr("does not know its overload"));
}

TEST(AtenValues, BackwardNormsHaveTheSizesOfTheirInput) {
  const auto batchNorm = [](AtenArg grad, AtenArg invstd, bool train) {
    return AtenCall{"aten::native_batch_norm_backward",
                    "",
                    {std::move(grad), id(0), id(1), NoneArg{}, NoneArg{}, id(1), std::move(invstd),
                     train, 1e-5, Ints{1, 1, 1}},
                    {}};
  };
  const Shapes shapes = {{2, 3, 4}, {3}, {2, 3}, {2, 3, 4}};
  EXPECT_EQ(refusal(shapes, batchNorm(id(0), id(1), true)), "");
  EXPECT_THAT(refusal(shapes, batchNorm(id(2), id(1), true)), HasSubstr("the sizes of its input"));
  EXPECT_THAT(refusal(shapes, batchNorm(id(0), id(2), true)), HasSubstr("for each channel"));
  EXPECT_THAT(refusal(shapes, batchNorm(id(0), id(1), false)), HasSubstr("'train' has to be true"));
  EXPECT_THAT(refusal(shapes, batchNorm(id(0), NoneArg{}, true)), HasSubstr("of the batch"));
  const auto layerNorm = [](AtenArg grad, AtenArg rstd, Ints shape) {
    return AtenCall{"aten::native_layer_norm_backward",
                    "",
                    {std::move(grad), id(0), std::move(shape), id(1), std::move(rstd), NoneArg{},
                     NoneArg{}, Ints{1, 0, 0}},
                    {}};
  };
  const Shapes rows = {{2, 3}, {2, 1}, {1, 1}, {2, 3}};
  EXPECT_EQ(refusal(rows, layerNorm(id(0), id(1), {3})), "");
  EXPECT_THAT(refusal(rows, layerNorm(id(2), id(1), {3})), HasSubstr("the sizes of its input"));
  EXPECT_THAT(refusal(rows, layerNorm(id(0), id(2), {3})), HasSubstr("an element for each row"));
  EXPECT_THAT(refusal(rows, layerNorm(id(0), id(1), {2, 3})), HasSubstr("for each row"));
  EXPECT_THAT(refusal(rows, layerNorm(id(0), id(1), {1, 2, 3})), HasSubstr("sizes of its input"));
  EXPECT_THAT(refusal(rows, layerNorm(id(0), id(1), {3}), DType::F32, {}, {0, 1}),
              HasSubstr("dense"));
}

TEST(AtenValues, BackwardConvolutionsHaveTheGradientOfTheirResult) {
  // Image, weight, gradient, the gradient of the image.
  const auto call = [](bool transposed, int64_t stride, int64_t groups, int64_t channels) {
    return AtenCall{"aten::convolution_backward",
                    "",
                    {id(2), id(0), id(1), Ints{channels}, Ints{stride, 1}, Ints{1, 0}, Ints{1, 1},
                     transposed, Ints{0, 0}, groups, Ints{1, 1, 1}},
                    {}};
  };
  const Shapes shapes = {{2, 4, 5, 6}, {6, 2, 3, 2}, {2, 6, 3, 5}, {2, 4, 5, 6}};
  EXPECT_EQ(refusal(shapes, call(false, 2, 2, 6)), "");
  EXPECT_THAT(refusal(shapes, call(false, 1, 2, 6)), HasSubstr("its gradient is [2,6,3,5]"));
  EXPECT_THAT(refusal(shapes, call(false, 0, 2, 6)), HasSubstr("out of range"));
  EXPECT_THAT(refusal(shapes, call(false, 2, 0, 6)), HasSubstr("number of groups is none"));
  EXPECT_THAT(refusal(shapes, call(false, 2, 1, 6)), HasSubstr("other channels"));
  EXPECT_THAT(refusal(shapes, call(false, 2, 2, 5)), HasSubstr("its bias"));
  const Shapes transposed = {{1, 2, 3, 3}, {2, 3, 3, 2}, {1, 3, 5, 4}, {1, 2, 3, 3}};
  EXPECT_EQ(refusal(transposed, call(true, 2, 1, 3)), "");
  EXPECT_THAT(refusal(transposed, call(true, 3, 1, 3)), HasSubstr("its gradient is [1,3,5,4]"));
}

TEST(AtenValues, BackwardPoolsHaveTheSizesOfTheImage) {
  const AtenCall call = {"aten::avg_pool2d_backward",
                         "grad_input",
                         {id(0), id(1), Ints{2, 2}, Ints{2, 2}, Ints{0, 0}, false, true, NoneArg{}},
                         {},
                         true};
  EXPECT_EQ(refusal({{1, 2, 2, 2}, {1, 2, 4, 4}, {1, 2, 4, 4}}, call), "");
  EXPECT_THAT(refusal({{1, 2, 2, 2}, {1, 2, 4, 4}, {1, 2, 4, 3}}, call), HasSubstr("its result"));
  EXPECT_THAT(refusal({{1, 2, 2, 2}, {1, 2, 4, 4}, {1, 2, 4, 4}}, call, DType::F32, {64, 32, 1, 4}),
              HasSubstr("dense"));
}

TEST(AtenValues, ACallWithoutResultsIsRefused) {
  AtenCall call{"aten::neg", "", {id(0)}, {kNoTensor}};
  EXPECT_THAT(refusal({{3}, {3}}, call), HasSubstr("it writes nothing"));
}

} // namespace
} // namespace cgc::test
