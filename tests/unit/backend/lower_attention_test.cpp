// Tests of lower(): which kernel computes an attention on cuda, and when LibTorch does.
#include "backend/attention.h"
#include "runtime/kernels/attention/attention_resident_kv.h"
#include "tests/unit/backend/lowered.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cgc::backend {
namespace {

using testing::_;
using testing::ElementsAre;

const std::string kFallback = "aten::scaled_dot_product_attention",
                  kMaskedFallback = "aten::_scaled_dot_product_attention_math";

/// Text of a graph with one cgc.attention, by default with 77 queries and keys in 12 heads. An
/// operand that `lines` defines is not an input.
struct Attention {
  std::string type = "f16[1,12,77,64]"; ///< Type of query, key and value.
  std::string lines = "";               ///< Lines before the attention.
  std::string inputs = "";              ///< More inputs, each with a comma before it.
  std::string mask = "";                ///< A value's name; "": none.
  std::string scale = "0.125";
  bool causal = false;
  std::string result = "f16[1,77,768]";

  Bucket lower(LowerOptions options = DeviceKind::Cuda) const {
    std::string header = "%unused: f16[1]@cuda" + inputs;
    for (const std::string name : {"%q", "%k", "%v"})
      if (lines.find(name + " =") == std::string::npos)
        header += ", " + name + ": " + type + "@cuda";
    const auto module =
        parse("graph @g(" + header + ") {\n" + lines + "\n%0 = cgc.attention(%q, %k, %v" +
              (mask.empty() ? "" : ", " + mask) + ") {is_causal=" + (causal ? "true" : "false") +
              ", scale=" + scale + "} : " + result + "@cuda\noutput %0\n}");
    auto plan = lowerAll(*module, options);
    EXPECT_TRUE(plan) << plan.status().message();
    return plan ? plan->plan.entries[0].buckets[0] : Bucket();
  }
  /// The name of the record that computes the attention.
  std::string record(LowerOptions options = DeviceKind::Cuda) const {
    return recordNames(lower(options)).at(0);
  }
};

/// The kernel and its launch shape for heads of 64 columns on a GPU with 132 SMs.
TEST(LowerAttention, ChoosesTheKernelBySize) {
  struct Row {
    int64_t batch, heads, queries, keys;
    bool causal;
    std::string kernel;
    uint32_t blocks, threads;
    int64_t tiles, stages; ///< Only for attention_resident_kv.
  };
  const Row kRows[] = {
      // The text tower of ViT-L-14: one tile per block while SMs are idle, then two blocks per SM.
      {1, 12, 77, 77, true, "resident_kv_f16_80", 24, 128, 1, 1},
      {5, 12, 77, 77, true, "resident_kv_f16_80", 120, 128, 1, 1},
      {6, 12, 77, 77, true, "resident_kv_f16_80", 72, 256, 2, 1},
      {16, 12, 77, 77, true, "resident_kv_f16_80", 192, 256, 2, 1},
      {64, 12, 128, 128, false, "resident_kv_f16_128", 768, 256, 2, 1},
      // With more tiles, one block per SM.
      {64, 12, 129, 100, false, "resident_kv_f16_128", 768, 256, 2, 1},
      {64, 12, 193, 100, false, "resident_kv_f16_128", 132, 384, 3, 2},
      // The image tower: keys split in two, then whole heads, whose last query is shared.
      {1, 16, 257, 257, false, "split_kv_f16", 80, 256, 0, 0},
      {8, 16, 257, 257, false, "resident_kv_f16_272", 128, 512, 4, 2},
      {64, 16, 257, 257, false, "resident_kv_f16_272", 132, 512, 4, 2},
      {64, 16, 258, 257, false, "resident_kv_f16_272", 132, 512, 4, 2},
      {64, 16, 197, 197, false, "resident_kv_f16_208", 132, 512, 4, 2},
      {1, 16, 257, 257, true, "resident_kv_f16_272", 80, 128, 1, 1},
      // More keys than attention_resident_kv holds, and many heads of few keys.
      {64, 12, 130, 130, false, "f16_64_hopper", 2, 160, 0, 0},
      {64, 12, 50, 50, false, "f16_64_hopper", 1, 128, 0, 0},
      {64, 12, 64, 64, false, "f16_64_hopper", 1, 128, 0, 0},
      {64, 12, 273, 273, false, "f16_64_hopper", 3, 192, 0, 0}};
  for (const Row &row : kRows) {
    const auto heads = [&](int64_t rows) {
      return "f16[" + std::to_string(row.batch) + "," + std::to_string(row.heads) + "," +
             std::to_string(rows) + ",64]@cuda";
    };
    const std::string result = "f16[" + std::to_string(row.batch) + "," +
                               std::to_string(row.queries) + "," + std::to_string(row.heads * 64) +
                               "]@cuda";
    auto plan = lowerForHopper(
        "%q: " + heads(row.queries) + ", %k: " + heads(row.keys) + ", %v: " + heads(row.keys),
        std::string("%0 = cgc.attention(%q, %k, %v) {is_causal=") +
            (row.causal ? "true" : "false") + ", scale=0.125} : " + result + "\noutput %0");
    ASSERT_TRUE(plan) << plan.status().message();
    const auto &launch =
        std::get<KernelLaunch>(plan->plan.entries[0].buckets[0].records.front().op);
    SCOPED_TRACE(std::to_string(row.batch) + " times " + std::to_string(row.queries) + " and " +
                 std::to_string(row.keys));
    EXPECT_EQ(launch.kernel, "attention_" + row.kernel);
    EXPECT_EQ(launch.grid[0], row.blocks);
    EXPECT_EQ(launch.block[0], row.threads);
    const Bucket &bucket = plan->plan.entries[0].buckets[0];
    for (uint32_t i = 0; i < 3; ++i)
      EXPECT_EQ(bucket.tensors[static_cast<uint32_t>(launch.reads[i])].slot,
                (Slot{BufferKind::Input, i, 0}));
    EXPECT_EQ(launch.ints.size() > 4 && launch.ints[4] == 1, row.causal);
    if (row.tiles > 0) {
      EXPECT_EQ(launch.ints[5], row.tiles);
      EXPECT_EQ(launch.ints[6], row.stages);
      EXPECT_EQ(launch.sharedBytes, (ResidentKvShape{row.tiles, row.threads / 128, row.stages})
                                        .sharedBytes(row.queries, row.keys));
    }
  }
}

TEST(LowerAttention, EveryKernelPassesIsCausal) {
  const std::tuple<std::string, std::string, Arch, std::string> kRows[] = {
      {"f16", "1", Arch::Sm90a, "resident_kv_f16_80"},
      {"f16", "64", Arch::Sm90a, "f16_64_hopper"}, // Many heads of few keys use the chunked kernel.
      {"bf16", "64", Arch::Sm80, "bf16_64"},
      {"f32", "1", Arch::Sm90a, "f32_64"}};
  for (const bool causal : {false, true})
    for (const auto &[dtype, batch, arch, kernel] : kRows) {
      const std::string rows = batch == "1" ? "77" : "50";
      const Bucket bucket = Attention{.type = dtype + "[" + batch + ",12," + rows + ",64]",
                                      .causal = causal,
                                      .result = dtype + "[" + batch + "," + rows + ",768]"}
                                .lower({DeviceKind::Cuda, arch});
      const auto &launch = std::get<KernelLaunch>(bucket.records.at(0).op);
      EXPECT_EQ(launch.kernel, "attention_" + kernel);
      EXPECT_EQ(launch.ints.at(4), causal) << kernel;
    }
}

TEST(LowerAttention, LibTorchCallPassesIsCausal) {
  for (const bool causal : {false, true}) {
    const Bucket bucket =
        Attention{.type = "f64[1,12,77,64]", .causal = causal, .result = "f64[1,77,768]"}.lower();
    const auto &call = std::get<AtenCall>(bucket.records.at(0).op);
    EXPECT_EQ(call.args.at(5), AtenArg(causal));
  }
}

/// The kernels exist for every floating dtype and every GPU.
TEST(LowerAttention, EveryOpenClipHeadWidthHasAKernel) {
  const std::pair<int64_t, std::string> kKernels[] = {
      {16, "32"},   {32, "32"},   {48, "48"},   {72, "80"},   {80, "80"}, {88, "96"},
      {104, "112"}, {112, "112"}, {120, "128"}, {128, "128"}, {60, ""},   {136, ""}};
  for (const std::string dtype : {"f16", "bf16", "f32"})
    for (const Arch arch : {Arch::Sm90a, Arch::Sm80})
      for (const auto &[width, kernel] : kKernels)
        EXPECT_EQ((Attention{.type = dtype + "[2,3,130," + std::to_string(width) + "]",
                             .result = dtype + "[2,130," + std::to_string(3 * width) + "]"})
                      .record({DeviceKind::Cuda, arch}),
                  kernel.empty() ? kFallback : "kernel attention_" + dtype + "_" + kernel)
            << width;
}

TEST(LowerAttention, GridOverflowFallsBackToLibTorch) {
  for (const auto &[batch, heads] : {std::pair<int64_t, int64_t>{65536, 1}, {1, 65536}})
    for (const int64_t rows : {3, 70}) {
      const std::string sizes = std::to_string(rows) + ",64]@cuda",
                        tensor = "f16[" + std::to_string(batch) + "," + std::to_string(heads) +
                                 "," + sizes,
                        result = "f16[" + std::to_string(batch) + "," + std::to_string(rows) + "," +
                                 std::to_string(heads * 64) + "]@cuda";
      auto plan = lowerForHopper("%q: " + tensor,
                                 "%0 = cgc.attention(%q, %q, %q) {scale=0.125} : " + result +
                                     "\noutput %0");
      ASSERT_TRUE(plan) << plan.status().message();
      EXPECT_EQ(recordNames(plan->plan.entries[0].buckets[0])[0], kFallback);
    }
}

/// attention_resident_kv takes no mask and exists for sm_90a only.
TEST(LowerAttention, MaskOrPreHopperUsesTheChunkedKernel) {
  const std::string heads = "f16[1,12,77,64]@cuda",
                    graph = "graph @g(%q: " + heads + ", %k: " + heads + ", %v: " + heads +
                            ", %m: f16[77,77]@cuda) {\n%0 = cgc.attention(%q, %k, %v",
                    end = ") {scale=0.125} : f16[1,77,768]@cuda\noutput %0\n}";
  const std::tuple<std::string, Arch, std::string> kRows[] = {
      {", %m", Arch::Sm90a, "attention_f16_64_hopper"},
      {", %m", Arch::Sm80, "attention_f16_64"},
      {"", Arch::Sm80, "attention_f16_64"}};
  for (const auto &[mask, arch, kernel] : kRows) {
    auto plan = lowerAll(*parse(graph + mask + end), {DeviceKind::Cuda, arch});
    ASSERT_TRUE(plan) << plan.status().message();
    const auto &launch =
        std::get<KernelLaunch>(plan->plan.entries[0].buckets[0].records.front().op);
    EXPECT_EQ(launch.kernel, kernel);
    EXPECT_EQ(launch.reads[3] != kNoTensor, !mask.empty());
  }
}

/// While SMs are idle, two warps share the keys, if there are more than a warp fetches at once.
TEST(AttentionCandidates, SplitManyKeysWhileSmsAreIdle) {
  const auto first = [](int64_t heads, int64_t keys) {
    return attentionCandidates({.dtype = DType::F16,
                                .batch = 1,
                                .heads = heads,
                                .queries = 64,
                                .keys = keys,
                                .width = 64,
                                .masked = true},
                               {Arch::Sm80, 100})
        .front();
  };
  EXPECT_EQ(first(75, 64).splits, 1);
  EXPECT_EQ(first(75, 64).threads, 64u);
  EXPECT_EQ(first(75, 65).splits, 2);
  EXPECT_EQ(first(75, 65).threads, 128u);
  EXPECT_EQ(first(76, 65).splits, 1); // More than three tiles for each SM.
  EXPECT_EQ(first(76, 65).threads, 128u);
}

TEST(LowerAttention, OtherTypesAndWidthsFallBackToLibTorch) {
  const auto ofType = [](const std::string &dtype, const std::string &width,
                         const std::string &columns) {
    return Attention{.type = dtype + "[1,12,77," + width + "]",
                     .result = dtype + "[1,77," + columns + "]"};
  };
  EXPECT_EQ(ofType("f16", "64", "768").record(), "kernel attention_resident_kv_f16_80");
  EXPECT_EQ(ofType("bf16", "64", "768").record(), "kernel attention_resident_kv_bf16_80");
  EXPECT_EQ(ofType("f32", "64", "768").record(), "kernel attention_f32_64");
  EXPECT_EQ(ofType("f64", "64", "768").record(), kFallback);
  for (const std::string dtype : {"f16", "bf16", "f32"}) {
    EXPECT_EQ(ofType(dtype, "80", "960").record(), "kernel attention_" + dtype + "_80");
    EXPECT_EQ(ofType(dtype, "60", "720").record(), kFallback);
    EXPECT_EQ(ofType(dtype, "256", "3072").record(), kFallback);
    EXPECT_EQ(ofType(dtype, "64", "768").record(DeviceKind::Cpu), kFallback);
  }
}

TEST(LowerAttention, NonPositiveScaleFallsBackToLibTorch) {
  for (const std::string type : {"f16", "f32"})
    for (const std::string scale : {"0.0", "-0.125"})
      EXPECT_EQ(
          (Attention{.type = type + "[1,12,77,64]", .scale = scale, .result = type + "[1,77,768]"}
               .record()),
          kFallback)
          << type << " " << scale;
}

TEST(LowerAttention, NoKeysFallsBackToLibTorch) {
  const std::string keys = " = aten.slice(%a) {dim=2, start=0, end=0} : "
                           "f16[1,12,0,64][59136,4928,64,1]@cuda\n";
  EXPECT_EQ((Attention{.lines = "%k" + keys + "%v" + keys, .inputs = ", %a: f16[1,12,77,64]@cuda"}
                 .record()),
            kFallback);
}

TEST(LowerAttention, NoQueriesFallsBackToLibTorch) {
  EXPECT_EQ((Attention{.lines = "%q = aten.slice(%a) {dim=2, start=0, end=0} : "
                                "f16[1,12,0,64][59136,4928,64,1]@cuda\n",
                       .inputs = ", %a: f16[1,12,77,64]@cuda",
                       .result = "f16[1,0,768]"})
                .record(),
            kFallback);
}

/// The kernels load vectors, so rows, heads and batches must begin at a multiple of a vector. An
/// operand has 12 * 77 * 64 = 59136 elements.
TEST(LowerAttention, UnalignedRowsFallBackToLibTorch) {
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
    EXPECT_EQ(from(8), "kernel attention_resident_kv_f16_80") << name;
    EXPECT_EQ(from(4), kFallback) << name;
    EXPECT_EQ(from(1), kFallback) << name;
    // The distance between rows: packed with others, or with 4 more elements.
    EXPECT_EQ(record("%NAME = aten.slice(%s) {dim=3, start=64, end=128} : "
                     "f16[1,12,77,64][177408,14784,192,1]@cuda",
                     "1,12,77,192"),
              "kernel attention_resident_kv_f16_80")
        << name;
    EXPECT_EQ(record("%NAME = aten.slice(%s) {dim=3, start=0, end=64} : "
                     "f16[1,12,77,64][62832,5236,68,1]@cuda",
                     "1,12,77,68"),
              kFallback)
        << name;
    // The distance between heads.
    EXPECT_EQ(record("%a = aten.slice(%s) {dim=1, start=0, end=4928} : f16[12,4928][4932,1]@cuda\n"
                     "%NAME = aten.view(%a) {size=[1, 12, 77, 64]} : "
                     "f16[1,12,77,64][59184,4932,64,1]@cuda",
                     "12,4932"),
              kFallback)
        << name;
    // The stride of a batch dimension of size 1 does not matter.
    EXPECT_EQ(record("%NAME = aten.permute(%s) {dims=[3, 0, 1, 2]} : "
                     "f16[1,12,77,64][1,4928,64,1]@cuda",
                     "12,77,64,1"),
              "kernel attention_resident_kv_f16_80")
        << name;
    // Columns that are not contiguous.
    EXPECT_EQ(record("%NAME = aten.slice(%s) {dim=3, start=0, end=128, step=2} : "
                     "f16[1,12,77,64][118272,9856,128,2]@cuda",
                     "1,12,77,128"),
              kFallback)
        << name;
  }
}

/// TMA cannot load a broadcast dimension; the kernels without TMA can.
TEST(LowerAttention, SharedKeyHeadsUseTheKernelWithoutTma) {
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

/// The kernels add a mask with dense columns to the scores. Any other one is converted first,
/// without the dimensions that it is broadcast in.
TEST(LowerAttention, ConvertsOtherMasks) {
  const std::tuple<std::string, std::string, std::string> kMasks[] = {
      {"%m: bool[77,77]@cuda", "", "kernel where"},
      {"%m: bool[1,1,77,1]@cuda", "", "kernel where"},
      // A mask that is broadcast along the keys.
      {"%m: f16[77,1]@cuda", "", "kernel copy"},
      {"%t: f16[77,77]@cuda", "%m = aten.transpose(%t) {dim0=0, dim1=1} : f16[77,77][1,77]@cuda",
       "kernel copy"},
      {"%t: f16[77,154]@cuda",
       "%m = aten.slice(%t) {dim=1, start=0, end=154, step=2} : f16[77,77][154,2]@cuda",
       "kernel copy"},
      {"%t: f16[77,1]@cuda", "%m = aten.expand(%t) {size=[77, 77]} : f16[77,77][1,0]@cuda",
       "kernel copy"}};
  for (const auto &[input, lines, converts] : kMasks) {
    const Bucket bucket = Attention{.lines = lines, .inputs = ", " + input, .mask = "%m"}.lower();
    EXPECT_THAT(recordNames(bucket), ElementsAre(converts, "kernel attention_f16_64_hopper"))
        << input;
    const auto &launch = std::get<KernelLaunch>(bucket.records.at(1).op);
    const TensorRef &mask = bucket.tensors[static_cast<uint32_t>(launch.reads[3])];
    EXPECT_EQ(mask.dtype, DType::F16) << input;
    EXPECT_THAT(mask.strides, ElementsAre(_, 0, 77, 1)) << input;
  }
}

TEST(LowerAttention, AMaskThatNoKernelTakesIsAddedByLibTorch) {
  const Bucket bucket = Attention{.type = "f16[1,12,77,256]",
                                  .inputs = ", %m: bool[77,77]@cuda",
                                  .mask = "%m",
                                  .result = "f16[1,77,3072]"}
                            .lower();
  EXPECT_THAT(recordNames(bucket), ElementsAre("kernel where", kMaskedFallback, "kernel copy"));
  const auto &call = std::get<AtenCall>(bucket.records.at(1).op);
  const auto mask = static_cast<uint32_t>(std::get<TensorId>(call.args.at(3)));
  EXPECT_EQ(bucket.tensors[mask].dtype, DType::F16);
}

/// On a GPU, LibTorch's fused kernels differ in queries without a visible key.
TEST(LowerAttention, AMaskedCallOfLibTorchOnAGpuIsItsDefinition) {
  for (const DeviceKind target : {DeviceKind::Cuda, DeviceKind::Cpu})
    for (const std::string mask : {"bool[3,5]", "f32[3,5]", ""}) {
      const std::string device = target == DeviceKind::Cuda ? "@cuda" : "", end = "\noutput %0\n}";
      auto module = parse("graph @g(%q: f32[2,4,3,8]" + device + ", %k: f32[2,2,5,8]" + device +
                          (mask.empty() ? "" : ", %m: " + mask + device) +
                          ") {\n%0 = aten.scaled_dot_product_attention(%q, %k, %k" +
                          (mask.empty() ? "" : ", %m") +
                          ") {enable_gqa=true, scale=0.5} : f32[2,4,3,8]" + device + end);
      auto plan = lowerAll(*module, target);
      ASSERT_TRUE(plan) << plan.status().message();
      const LaunchRecord &record = plan->plan.entries[0].buckets[0].records.back();
      const bool isDefinition = target == DeviceKind::Cuda && !mask.empty();
      EXPECT_EQ(recordName(record), isDefinition ? kMaskedFallback : kFallback) << mask;
      const auto &call = std::get<AtenCall>(record.op);
      const size_t scale = isDefinition ? 7 : 6; // After dropout_mask.
      ASSERT_EQ(call.args.size(), scale + 2);
      EXPECT_EQ(call.args[scale], AtenArg(0.5));
      EXPECT_EQ(call.args[scale + 1], AtenArg(true));
    }
}

} // namespace
} // namespace cgc::backend
