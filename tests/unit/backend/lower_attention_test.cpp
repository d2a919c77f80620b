// Tests of lower(): which attention becomes which kernel on cuda, and which stays with LibTorch.
#include "tests/unit/backend/lowered.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cgc::backend {
namespace {

using testing::ElementsAre;
using testing::Not;

const std::string kLibTorchs = "aten::scaled_dot_product_attention";

/// cgc.attention of 77 rows in 12 heads. Operands that `lines` define are no inputs.
struct Attention {
  std::string type = "f16[1,12,77,64]"; ///< Of query, key and value.
  std::string lines = "";               ///< Before it.
  std::string inputs = "";              ///< More of them, each with a comma before it.
  std::string mask = "";                ///< A value's name; "": none.
  std::string scale = "0.125";
  std::string result = "f16[1,77,768]";

  Bucket lower(LowerOptions options = DeviceKind::Cuda) const {
    std::string header = "%unused: f16[1]@cuda" + inputs;
    for (const std::string name : {"%q", "%k", "%v"})
      if (lines.find(name + " =") == std::string::npos)
        header += ", " + name + ": " + type + "@cuda";
    const auto module =
        parse("graph @g(" + header + ") {\n" + lines + "\n%0 = cgc.attention(%q, %k, %v" +
              (mask.empty() ? "" : ", " + mask) + ") {scale=" + scale + "} : " + result +
              "@cuda\noutput %0\n}");
    auto plan = lowerAll(*module, options);
    EXPECT_TRUE(plan) << plan.status().message();
    return plan ? plan->plan.entries[0].buckets[0] : Bucket();
  }
  /// The name of what computes it.
  std::string record(LowerOptions options = DeviceKind::Cuda) const {
    return recordNames(lower(options)).at(0);
  }
};

TEST(LowerAttention, OfOtherTypesAndWidthsIsLibTorchs) {
  const auto ofType = [](const std::string &dtype, const std::string &width,
                         const std::string &columns) {
    return Attention{.type = dtype + "[1,12,77," + width + "]",
                     .result = dtype + "[1,77," + columns + "]"};
  };
  EXPECT_EQ(ofType("f16", "64", "768").record(), "kernel attention_whole_f16_80");
  EXPECT_EQ(ofType("bf16", "64", "768").record(), "kernel attention_whole_bf16_80");
  EXPECT_EQ(ofType("f32", "64", "768").record(), "kernel attention_f32_64");
  EXPECT_EQ(ofType("f64", "64", "768").record(), kLibTorchs);
  for (const std::string dtype : {"f16", "bf16", "f32"}) {
    EXPECT_EQ(ofType(dtype, "80", "960").record(), "kernel attention_" + dtype + "_80");
    EXPECT_EQ(ofType(dtype, "60", "720").record(), kLibTorchs);
    EXPECT_EQ(ofType(dtype, "256", "3072").record(), kLibTorchs);
    EXPECT_EQ(ofType(dtype, "64", "768").record(DeviceKind::Cpu), kLibTorchs);
  }
}

TEST(LowerAttention, WithoutAPositiveScaleIsLibTorchs) {
  for (const std::string type : {"f16", "f32"})
    for (const std::string scale : {"0.0", "-0.125"})
      EXPECT_EQ(
          (Attention{.type = type + "[1,12,77,64]", .scale = scale, .result = type + "[1,77,768]"}
               .record()),
          kLibTorchs)
          << type << " " << scale;
}

TEST(LowerAttention, OfNoKeysIsLibTorchs) {
  const std::string keys = " = aten.slice(%a) {dim=2, start=0, end=0} : "
                           "f16[1,12,0,64][59136,4928,64,1]@cuda\n";
  EXPECT_EQ((Attention{.lines = "%k" + keys + "%v" + keys, .inputs = ", %a: f16[1,12,77,64]@cuda"}
                 .record()),
            kLibTorchs);
}

TEST(LowerAttention, OfNoQueriesIsLibTorchs) {
  EXPECT_EQ((Attention{.lines = "%q = aten.slice(%a) {dim=2, start=0, end=0} : "
                                "f16[1,12,0,64][59136,4928,64,1]@cuda\n",
                       .inputs = ", %a: f16[1,12,77,64]@cuda",
                       .result = "f16[1,0,768]"})
                .record(),
            kLibTorchs);
}

/// 12 * 77 * 64 = 59136 elements, and some more.
TEST(LowerAttention, OfRowsWithoutVectorsIsLibTorchs) {
  for (const std::string name : {"%q", "%k", "%v"}) {
    const auto record = [&](const std::string &lines, const std::string &input) {
      Attention attention{.lines = lines, .inputs = ", %s: f16[" + input + "]@cuda"};
      attention.lines.replace(attention.lines.find("%NAME"), 5, name);
      return attention.record();
    };
    const auto from = [&](int first) {
      return record("%a = aten.slice(%s) {dim=0, start=" + std::to_string(first) +
                        ", end=" + std::to_string(first + 59136) +
                        "} : f16[59136]@cuda\n%NAME = aten.view(%a) {size=[1, 12, 77, 64]} : "
                        "f16[1,12,77,64]@cuda",
                    "59152");
    };
    EXPECT_EQ(from(8), "kernel attention_whole_f16_80") << name;
    EXPECT_EQ(from(4), kLibTorchs) << name;
    EXPECT_EQ(from(1), kLibTorchs) << name;
    // From row to row: packed with others, or with 4 elements more.
    EXPECT_EQ(record("%NAME = aten.slice(%s) {dim=3, start=64, end=128} : "
                     "f16[1,12,77,64][177408,14784,192,1]@cuda",
                     "1,12,77,192"),
              "kernel attention_whole_f16_80")
        << name;
    EXPECT_EQ(record("%NAME = aten.slice(%s) {dim=3, start=0, end=64} : "
                     "f16[1,12,77,64][62832,5236,68,1]@cuda",
                     "1,12,77,68"),
              kLibTorchs)
        << name;
    // From head to head.
    EXPECT_EQ(record("%a = aten.slice(%s) {dim=1, start=0, end=4928} : f16[12,4928][4932,1]@cuda\n"
                     "%NAME = aten.view(%a) {size=[1, 12, 77, 64]} : "
                     "f16[1,12,77,64][59184,4932,64,1]@cuda",
                     "12,4932"),
              kLibTorchs)
        << name;
    // Of one batch the distance to the next does not matter.
    EXPECT_EQ(record("%NAME = aten.permute(%s) {dims=[3, 0, 1, 2]} : "
                     "f16[1,12,77,64][1,4928,64,1]@cuda",
                     "12,77,64,1"),
              "kernel attention_whole_f16_80")
        << name;
    // Columns lie apart.
    EXPECT_EQ(record("%NAME = aten.slice(%s) {dim=3, start=0, end=128, step=2} : "
                     "f16[1,12,77,64][118272,9856,128,2]@cuda",
                     "1,12,77,128"),
              kLibTorchs)
        << name;
  }
}

/// Tensor copies take no dimension that is broadcast: other kernels do.
TEST(LowerAttention, OfHeadsThatShareKeysIsCopiedByThreads) {
  const auto record = [](const std::string &name) {
    return Attention{.lines = name + " = aten.expand(%s) {size=[1, 12, 77, 64]} : "
                                     "f16[1,12,77,64][4928,0,64,1]@cuda",
                     .inputs = ", %s: f16[1,1,77,64]@cuda"}
        .record();
  };
  EXPECT_EQ(record("%k"), "kernel attention_f16_64");
  EXPECT_EQ(record("%v"), "kernel attention_f16_64");
  EXPECT_EQ(record("%q"), "kernel attention_f16_64_hopper");
}

TEST(LowerAttention, TakesAMaskThatBroadcasts) {
  const std::tuple<std::string, std::vector<int64_t>> kMasks[] = {
      {"f16[77,77]", {0, 0, 77, 1}},
      {"f16[1,77]", {0, 0, 0, 1}},
      {"f16[12,1,77]", {0, 77, 0, 1}},
      {"f16[1,1,77,77]", {0, 0, 77, 1}},
      {"f16[1,12,77,77]", {71148, 5929, 77, 1}}};
  for (const auto &[type, strides] : kMasks) {
    const Bucket bucket = Attention{.inputs = ", %m: " + type + "@cuda", .mask = "%m"}.lower();
    ASSERT_EQ(recordName(bucket.records[0]), "kernel attention_f16_64_hopper") << type;
    const TensorId mask = std::get<KernelLaunch>(bucket.records[0].op).reads[3];
    const TensorRef &tensor = bucket.tensors[static_cast<uint32_t>(mask)];
    EXPECT_THAT(tensor.sizes, ElementsAre(1, 12, 77, 77)) << type;
    for (int dim = 1; dim < 4; ++dim)
      EXPECT_EQ(tensor.strides.empty() ? strides[dim] : tensor.strides[dim], strides[dim]) << type;
  }
}

TEST(LowerAttention, WithAnyOtherMaskIsLibTorchs) {
  const std::pair<std::string, std::string> kMasks[] = {
      {"%m: bool[77,77]@cuda", ""},
      // One number for all keys of a query.
      {"%m: f16[77,1]@cuda", ""},
      {"%t: f16[77,77]@cuda", "%m = aten.transpose(%t) {dim0=0, dim1=1} : f16[77,77][1,77]@cuda"},
      {"%t: f16[77,154]@cuda",
       "%m = aten.slice(%t) {dim=1, start=0, end=154, step=2} : f16[77,77][154,2]@cuda"},
      {"%t: f16[77,1]@cuda", "%m = aten.expand(%t) {size=[77, 77]} : f16[77,77][1,0]@cuda"}};
  for (const auto &[input, lines] : kMasks) {
    const Bucket bucket = Attention{.lines = lines, .inputs = ", " + input, .mask = "%m"}.lower();
    ASSERT_EQ(recordName(bucket.records[0]), kLibTorchs) << input;
    const auto &call = std::get<AtenCall>(bucket.records[0].op);
    EXPECT_THAT(call.args[3], Not(AtenArg(NoneArg{}))) << input;
  }
}

} // namespace
} // namespace cgc::backend
