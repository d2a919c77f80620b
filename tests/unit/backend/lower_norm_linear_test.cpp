// Tests of lower(): when cgc.norm_linear is one kernel, and which record writes the row statistics
// that it reads.
#include "runtime/kernels/gemm/gemm.h"
#include "runtime/kernels/pointwise/activation.h"
#include "tests/unit/backend/lowered.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cgc::backend {
namespace {

using testing::ElementsAre;

/// Lowers cgc.norm_linear of `rows` rows of 64 columns on cuda.
Result<CompiledPlan> lowerNormLinear(int64_t rows, Arch arch = Arch::Sm90a,
                                     const std::string &dtype = "f16") {
  const std::string x = dtype + "[" + std::to_string(rows) + ",64]@cuda",
                    y = dtype + "[" + std::to_string(rows) + ",24]@cuda";
  const auto module =
      parse("module @m {\n  param @w : " + dtype + "[24,64]@cuda\n  param @b : " + dtype +
            "[24]@cuda\n  param @p : " + dtype + "[64,64]@cuda\n  graph @g(%r: " + x +
            ") {\n    %p = get_attr @p : " + dtype +
            "[64,64]@cuda\n    %x, %s = cgc.linear(%r, %p) {row_statistics=true} : " + x +
            ", f32[" + std::to_string(rows) + ",1,2]@cuda\n    %w = get_attr @w : " + dtype +
            "[24,64]@cuda\n    %b = get_attr @b : " + dtype +
            "[24]@cuda\n    %0 = cgc.norm_linear(%x, %w, %b, %s) {eps=0.001, "
            "activation=\"gelu\"} : " +
            y + "\n    output %0\n  }\n}");
  return lowerAll(*module, {DeviceKind::Cuda, arch});
}

TEST(Lower, NormLinearIsOneKernelForFewTokens) {
  for (const std::string dtype : {"f16", "bf16"})
    for (const int64_t rows : {1, 77, 1536}) {
      auto plan = lowerNormLinear(rows, Arch::Sm90a, dtype);
      ASSERT_TRUE(plan) << plan.status().message();
      const Bucket &bucket = plan->plan.entries[0].buckets[0];
      ASSERT_THAT(recordNames(bucket),
                  ElementsAre(testing::StartsWith("kernel gemm_" + dtype + "_"),
                              testing::StartsWith("kernel gemm_norm_" + dtype + "_")));
      const auto &first = std::get<KernelLaunch>(bucket.records[0].op);
      const auto &launch = std::get<KernelLaunch>(bucket.records[1].op);
      const auto tile = std::ranges::find_if(gemmNormTiles(), [&](const GemmTile &tile) {
        return launch.kernel.ends_with(tile.name);
      });
      ASSERT_NE(tile, gemmNormTiles().end());
      EXPECT_TRUE(std::ranges::equal(launch.grid, tile->grid(rows, 24, 132)));
      EXPECT_EQ(launch.block[0], tile->threads());
      EXPECT_GE(launch.sharedBytes, tile->sharedBytes(2));
      ASSERT_EQ(launch.reads.size(), 4u);
      // The preceding GEMM writes the row statistics of its result.
      EXPECT_EQ(launch.reads[3], first.writes[1]);
      EXPECT_THAT(bucket.tensors[static_cast<uint32_t>(launch.reads[3])].sizes,
                  ElementsAre(rows, 1, 2));
      EXPECT_EQ(launch.writes[1], kNoTensor);
      EXPECT_THAT(launch.ints, ElementsAre(rows, 24, 64, int64_t(Activation::Gelu), 0));
      EXPECT_THAT(launch.floats, ElementsAre(0.001));
    }
}

/// The producer of x writes row statistics only if a kernel reads them.
TEST(Lower, NormLinearWithoutAKernelAsksForNoRowStatistics) {
  auto plan = lowerForHopper("%x: f16[77,64]@cuda, %p: f16[64,64]@cuda, %w: f16[24,64]@cuda, "
                             "%b: f16[25]@cuda",
                             "%1, %s = cgc.linear(%x, %p) {row_statistics=true} : "
                             "f16[77,64]@cuda, f32[77,1,2]@cuda\n"
                             "%2 = aten.slice(%b) {dim=0, start=1} : f16[24]@cuda\n"
                             "%3 = cgc.norm_linear(%1, %w, %2, %s) {eps=0.001, "
                             "activation=\"none\"} : f16[77,24]@cuda\noutput %3");
  ASSERT_TRUE(plan) << plan.status().message();
  const Bucket &bucket = plan->plan.entries[0].buckets[0];
  EXPECT_THAT(recordNames(bucket), testing::Contains("kernel layer_norm_f16"));
  EXPECT_EQ(std::get<KernelLaunch>(bucket.records[0].op).writes[1], kNoTensor);
}

/// Lowers cgc.norm_linear with N = 4096 of M rows that a linear computes.
Result<CompiledPlan> lowerManyRows(int64_t m, int64_t width, const std::string &activation) {
  const auto f16 = [](int64_t rows, int64_t columns) {
    return "f16[" + std::to_string(rows) + "," + std::to_string(columns) + "]@cuda";
  };
  return lowerForHopper(
      "%x: " + f16(m, width) + ", %p: " + f16(width, width) + ", %w: " + f16(4096, width),
      "%0, %s = cgc.linear(%x, %p) {row_statistics=true} : " + f16(m, width) + ", f32[" +
          std::to_string(m) + "," + std::to_string(width / 64) +
          ",2]@cuda\n%1 = cgc.norm_linear(%0, %w, none, %s) {eps=0.001, activation=\"" +
          activation + "\"} : " + f16(m, 4096) + "\noutput %1");
}

TEST(Lower, NormLinearOfManyRowsIsAPersistentKernel) {
  for (const std::string activation : {"gelu", "none"}) {
    auto plan = lowerManyRows(2056, 1024, activation);
    ASSERT_TRUE(plan) << plan.status().message();
    const Bucket &bucket = plan->plan.entries[0].buckets[0];
    ASSERT_THAT(recordNames(bucket), ElementsAre(testing::StartsWith("kernel gemm_f16_"),
                                                 "kernel gemm_norm_f16_128x176_persistent"));
    const auto launch = [&](size_t i) { return std::get<KernelLaunch>(bucket.records[i].op); };
    EXPECT_NE(launch(0).writes[1], kNoTensor);
    EXPECT_EQ(launch(1).reads[3], launch(0).writes[1]);
  }
}

TEST(Lower, NormLinearOfManyRowsHasALayerNormWherePersistentKernelsDoNotNormalize) {
  const auto names = [](int64_t m, int64_t width, const std::string &activation) {
    auto plan = lowerManyRows(m, width, activation);
    EXPECT_TRUE(plan) << plan.status().message();
    return plan.isOk() ? recordNames(plan->plan.entries[0].buckets[0]) : std::vector<std::string>();
  };
  // At 64 images of ViT-L-14, cuBLASLt computes neither GEMM.
  EXPECT_THAT(names(16448, 1024, "none"),
              ElementsAre(testing::StartsWith("kernel gemm_f16_"),
                          testing::StartsWith("kernel gemm_norm_f16_")));
  // cuBLASLt computes x and writes no row statistics.
  EXPECT_THAT(names(32768, 2048, "gelu"), ElementsAre("cublaslt.matmul", "kernel layer_norm_f16",
                                                      testing::StartsWith("kernel gemm_f16_")));
  // cuBLASLt computes the GEMM itself.
  EXPECT_THAT(names(32768, 1024, "none"), ElementsAre(testing::StartsWith("kernel gemm_f16_"),
                                                      "kernel layer_norm_f16", "cublaslt.matmul"));
  // The number of groups of row statistics is odd.
  EXPECT_THAT(names(2056, 960, "gelu"),
              ElementsAre(testing::StartsWith("kernel gemm_f16_"), "kernel layer_norm_f16",
                          testing::StartsWith("kernel gemm_f16_")));
}

TEST(Lower, NormLinearIsALayerNormAndAGemmElsewhere) {
  auto many = lowerNormLinear(1537);
  ASSERT_TRUE(many) << many.status().message();
  const Bucket &bucket = many->plan.entries[0].buckets[0];
  EXPECT_THAT(recordNames(bucket),
              ElementsAre(testing::StartsWith("kernel gemm_f16_"), "kernel layer_norm_f16",
                          testing::StartsWith("kernel gemm_f16_")));
  EXPECT_EQ(std::get<KernelLaunch>(bucket.records[0].op).writes[1], kNoTensor);
  // The weights of the plan already contain scale and shift.
  EXPECT_THAT(std::get<KernelLaunch>(bucket.records[1].op).reads,
              ElementsAre(testing::Ne(kNoTensor), kNoTensor, kNoTensor));
  EXPECT_THAT(std::get<KernelLaunch>(bucket.records[1].op).floats, ElementsAre(0.001));

  auto portable = lowerNormLinear(77, Arch::Sm80);
  ASSERT_TRUE(portable) << portable.status().message();
  EXPECT_THAT(recordNames(portable->plan.entries[0].buckets[0]),
              ElementsAre("cublaslt.matmul", "kernel layer_norm_f16", "cublaslt.matmul",
                          "kernel elementwise_f16"));
}

/// The first layer of a tower reads the row statistics that the preceding kernel writes.
TEST(Lower, LayerNormAndEmbeddingWriteRowStatisticsForNormLinear) {
  const std::pair<std::string, std::string> kFirst[] = {
      {"kernel layer_norm_",
       "%9, %0, %s = cgc.add_layer_norm(%x, none, %g) {row_statistics=true} : "
       "T[2,5,128]@cuda, T[2,5,128]"},
      {"kernel layer_norm_by_f32_",
       "%9, %0, %s = cgc.add_layer_norm(%x, none, %f) {row_statistics=true} : "
       "T[2,5,128]@cuda, T[2,5,128]"},
      {"kernel embedding_", "%0, %s = cgc.embedding(%i, %t) {row_statistics=true} : T[2,5,128]"},
      {"kernel embedding_",
       "%0, %s = cgc.embedding(%i, %t, %p) {row_statistics=true} : T[2,5,128]"}};
  for (const std::string dtype : {"f16", "bf16"})
    for (const auto &[kernel, first] : kFirst) {
      const auto typed = [&](std::string text) {
        for (size_t at = 0; (at = text.find("T[", at)) != std::string::npos;)
          text.replace(at, 1, dtype);
        return text;
      };
      auto plan = lowerForHopper(
          typed("%x: T[2,5,128]@cuda, %g: T[128]@cuda, %f: f32[128]@cuda, %i: i64[2,5]@cuda, "
                "%t: T[9,128]@cuda, %p: T[5,128]@cuda, %w: T[24,128]@cuda"),
          typed(first + R"(@cuda, f32[10,2,2]@cuda
    %1 = cgc.norm_linear(%0, %w, none, %s) {eps=0.001, activation="none"} : T[2,5,24]@cuda
    %2 = cgc.norm_linear(%0, %w, none, %s) {eps=0.002, activation="none"} : T[2,5,24]@cuda
    output %0, %1, %2)"));
      ASSERT_TRUE(plan) << plan.status().message();
      const Bucket &bucket = plan->plan.entries[0].buckets[0];
      ASSERT_THAT(recordNames(bucket),
                  ElementsAre(kernel + dtype, testing::StartsWith("kernel gemm_norm_" + dtype),
                              testing::StartsWith("kernel gemm_norm_" + dtype)));
      const auto launch = [&](size_t i) { return std::get<KernelLaunch>(bucket.records[i].op); };
      ASSERT_EQ(launch(0).writes.size(), 2u);
      ASSERT_NE(launch(0).writes[1], kNoTensor);
      EXPECT_EQ(launch(1).reads[3], launch(0).writes[1]);
      EXPECT_EQ(launch(2).reads[3], launch(0).writes[1]);
      const TensorRef &statistics = bucket.tensors[static_cast<uint32_t>(launch(0).writes[1])];
      EXPECT_EQ(statistics.dtype, DType::F32);
      EXPECT_THAT(statistics.sizes, ElementsAre(10, 2, 2));
    }
}

/// Kernels that cannot write row statistics of their result.
TEST(Lower, NormLinearOfRowsWithoutRowStatisticsHasALayerNorm) {
  const std::string norm = "%z, %y, %s = cgc.add_layer_norm";
  const std::string with = " {row_statistics=true} : ";
  struct Case {
    std::string record, inputs, lines, y, statistics;
  };
  const Case kCases[] = {
      // More columns than fit in registers; an incomplete group.
      {"layer_norm_f16", "%x: f16[5,1088]@cuda",
       norm + "(%x)" + with + "f16[5,1088]@cuda, f16[5,1088]@cuda", "[5,1088]", "[5,17,2]"},
      {"layer_norm_f16", "%x: f16[5,96]@cuda",
       norm + "(%x)" + with + "f16[5,96]@cuda, f16[5,96]@cuda", "[5,96]", "[5,2,2]"},
      {"embedding_f16", "%x: f16[9,96]@cuda, %i: i64[2,5]@cuda",
       "%y, %s = cgc.embedding(%i, %x)" + with + "f16[2,5,96]@cuda", "[2,5,96]", "[10,2,2]"},
      // The sum has a kernel of its own.
      {"add_layer_norm_f16", "%x: f16[5,64]@cuda, %a: f16[5,64]@cuda",
       norm + "(%x, %a)" + with + "f16[5,64]@cuda, f16[5,64]@cuda", "[5,64]", "[5,1,2]"},
      // A view that begins between two vectors.
      {"layer_norm_f16", "%x: f16[5,64]@cuda, %g: f16[65]@cuda",
       "%a = aten.slice(%g) {dim=0, start=1, end=65} : f16[64]@cuda\n" + norm + "(%x, none, %a)" +
           with + "f16[5,64]@cuda, f16[5,64]@cuda",
       "[5,64]", "[5,1,2]"},
      {"embedding_f16", "%x: f16[577]@cuda, %i: i64[2,5]@cuda",
       "%n = aten.slice(%x) {dim=0, start=1, end=577} : f16[576]@cuda\n"
       "%m = aten.view(%n) {size=[9, 64]} : f16[9,64]@cuda\n"
       "%y, %s = cgc.embedding(%i, %m)" +
           with + "f16[2,5,64]@cuda",
       "[2,5,64]", "[10,1,2]"},
      // For this many rows, a separate layer norm and GEMM are faster.
      {"layer_norm_f16", "%x: f16[1537,64]@cuda",
       norm + "(%x)" + with + "f16[1537,64]@cuda, f16[1537,64]@cuda", "[1537,64]", "[1537,1,2]"}};
  for (const auto &[record, inputs, lines, y, statistics] : kCases) {
    const std::string columns = y.substr(y.rfind(',')), rows = y.substr(0, y.rfind(','));
    auto plan = lowerForHopper("%w: f16[24" + columns + "@cuda, " + inputs,
                               lines + ", f32" + statistics +
                                   "@cuda\n%r = cgc.norm_linear(%y, %w, none, %s) : f16" + rows +
                                   ",24]@cuda\noutput %r");
    ASSERT_TRUE(plan) << plan.status().message();
    const Bucket &bucket = plan->plan.entries[0].buckets[0];
    EXPECT_THAT(recordNames(bucket), ElementsAre("kernel " + record, "kernel layer_norm_f16",
                                                 testing::StartsWith("kernel gemm_f16_")))
        << lines;
    // No tensor holds row statistics.
    for (const TensorRef &tensor : bucket.tensors)
      EXPECT_NE(tensor.dtype, DType::F32) << lines;
  }
}

TEST(Lower, NormLinearOfAnInputHasALayerNorm) {
  auto plan = lowerForHopper("%x: f16[5,64]@cuda, %w: f16[24,64]@cuda",
                             "%1 = cgc.norm_linear(%x, %w, none) : f16[5,24]@cuda\noutput %1");
  ASSERT_TRUE(plan) << plan.status().message();
  EXPECT_THAT(recordNames(plan->plan.entries[0].buckets[0]),
              ElementsAre("kernel layer_norm_f16", testing::StartsWith("kernel gemm_f16_")));
}

TEST(Lower, NormLinearOfPermutedRowsCopiesThemForTheKernel) {
  auto plan = lowerForHopper("%x: f16[2,5,64]@cuda, %w: f16[24,64]@cuda",
                             "%0 = aten.permute(%x) {dims=[1, 0, 2]} : f16[5,2,64][64,320,1]@cuda\n"
                             "%1 = cgc.norm_linear(%0, %w, none) : f16[5,2,24]@cuda\noutput %1");
  ASSERT_TRUE(plan) << plan.status().message();
  const std::vector<std::string> names = recordNames(plan->plan.entries[0].buckets[0]);
  ASSERT_EQ(names.size(), 3u);
  EXPECT_EQ(names[1], "kernel layer_norm_f16") << "it reads the copy";
  EXPECT_THAT(names[2], testing::StartsWith("kernel gemm_f16_"));
}

/// Readers other than cgc.norm_linear get row statistics in any case; a kernel that cannot write
/// them is followed by records that compute them.
TEST(Lower, RowStatisticsThatAreAnOutputAreComputed) {
  for (const auto &[columns, kernelWrites] : {std::pair(64, true), {96, false}}) {
    const std::string c = std::to_string(columns), groups = columns == 64 ? "1" : "2";
    auto plan = lowerForHopper(
        "%x: f16[5," + c + "]@cuda, %w: f16[24," + c + "]@cuda",
        "%z, %y, %s = cgc.add_layer_norm(%x) {row_statistics=true} : f16[5," + c +
            "]@cuda, f16[5," + c + "]@cuda, f32[5," + groups +
            ",2]@cuda\n%r = cgc.norm_linear(%y, %w, none, %s) : f16[5,24]@cuda\noutput %s, %r");
    ASSERT_TRUE(plan) << plan.status().message();
    const Bucket &bucket = plan->plan.entries[0].buckets[0];
    const std::vector<std::string> names = recordNames(bucket);
    EXPECT_EQ(names.front(), "kernel layer_norm_f16");
    EXPECT_THAT(names.back(), testing::StartsWith("kernel gemm_norm_f16_"));
    EXPECT_EQ(
        llvm::count_if(
            names, [](const std::string &name) { return name.find("sum") != std::string::npos; }),
        kernelWrites ? 0 : 2)
        << testing::PrintToString(names);
    // The last record reads the output.
    const TensorId statistics = std::get<KernelLaunch>(bucket.records.back().op).reads[3];
    EXPECT_EQ(bucket.tensors[static_cast<uint32_t>(statistics)].slot.buffer, BufferKind::Output);
  }
}

/// Where no kernel takes an op, its definition computes row statistics only for readers that cannot
/// do without; and what computes the rows writes them if a kernel reads them.
TEST(Lower, ADefinitionHasTheReadersOfItsOp) {
  const auto names = [](const std::string &dtype, const std::string &lines,
                        const std::string &outputs) {
    std::string text = lines;
    for (size_t at = 0; (at = text.find("T[", at)) != std::string::npos;)
      text.replace(at, 1, dtype);
    auto plan = lowerForHopper("%x: " + dtype + "[5,64]@cuda, %w: " + dtype +
                                   "[64,64]@cuda, %v: " + dtype + "[24,64]@cuda",
                               text + "\noutput " + outputs);
    EXPECT_TRUE(plan) << plan.status().message();
    return plan ? recordNames(plan->plan.entries[0].buckets[0]) : std::vector<std::string>();
  };
  const std::string first = "%0, %s = cgc.norm_linear(%x, %w, none) {row_statistics=true} : "
                            "T[5,64]@cuda, f32[5,1,2]@cuda\n",
                    norm = "%z, %0, %s = cgc.add_layer_norm(%x) {row_statistics=true} : "
                           "T[5,64]@cuda, T[5,64]@cuda, f32[5,1,2]@cuda\n",
                    second = "%1 = cgc.norm_linear(%0, %v, none, %s) : T[5,24]@cuda";
  EXPECT_THAT(names("f16", first + second, "%1"),
              ElementsAre("kernel layer_norm_f16", testing::StartsWith("kernel gemm_f16_"),
                          testing::StartsWith("kernel gemm_norm_f16_")));
  EXPECT_THAT(names("f32", first + second, "%1"),
              ElementsAre("kernel layer_norm_f32", "cublaslt.matmul", "kernel layer_norm_f32",
                          "cublaslt.matmul"));
  const auto computesSums = testing::Contains(testing::HasSubstr("sum"));
  EXPECT_THAT(names("f64", norm + second, "%1"), testing::Not(computesSums));
  EXPECT_THAT(names("f64", norm + second, "%1, %s"), computesSums);
}

/// gemm_norm takes no operands that gemm does not take, and exists only for Hopper.
TEST(Lower, NormLinearThatGemmDoesNotTakeHasALayerNorm) {
  for (const auto &[features, arch, isOne] :
       {std::tuple(24, Arch::Sm90a, true), {20, Arch::Sm90a, false}, {24, Arch::Sm80, false}}) {
    const std::string n = std::to_string(features);
    auto plan = lowerAll(*parse("graph @g(%x: f16[5,64]@cuda, %w: f16[" + n +
                                R"(,64]@cuda) {
    %z, %0, %s = cgc.add_layer_norm(%x) {row_statistics=true} : f16[5,64]@cuda, f16[5,64]@cuda, f32[5,1,2]@cuda
    %1 = cgc.norm_linear(%0, %w, none, %s) {eps=0.001, activation="none"} : f16[5,)" +
                                n + "]@cuda\n    output %1\n  }"),
                         {DeviceKind::Cuda, arch});
    ASSERT_TRUE(plan) << plan.status().message();
    const std::vector<std::string> names = recordNames(plan->plan.entries[0].buckets[0]);
    if (isOne)
      EXPECT_THAT(names, ElementsAre("kernel layer_norm_f16",
                                     testing::StartsWith("kernel gemm_norm_f16_")));
    else
      EXPECT_THAT(names,
                  ElementsAre("kernel layer_norm_f16", "kernel layer_norm_f16", "cublaslt.matmul"));
  }
}

} // namespace
} // namespace cgc::backend
