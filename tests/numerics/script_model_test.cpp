// ScriptModel: the provider runs a model's file as LibTorch's reference does, into given memory.
#include "frontend/frontend.h"
#include "runtime/exec/provider.h"
#include "tests/numerics/test_models.h"
#include "tests/paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace cgc::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ScriptModelTest : public testing::Test {
protected:
  void SetUp() override {
    auto provider = loadProvider(buildDir() / "lib");
    ASSERT_TRUE(provider.isOk()) << provider.status().message();
    provider_ = *std::move(provider);
    ASSERT_TRUE(provider_->initialize(DeviceKind::Cpu, 0).isOk());
  }

  /// Runs encode_text on `tokens`, i64[batch,16], and returns the features, of `dtype`.
  Result<std::vector<std::byte>> run(ScriptModel &model, std::vector<int64_t> &tokens, DType dtype,
                                     int64_t width = 32) {
    const int64_t batch = int64_t(tokens.size()) / 16;
    const std::vector<int64_t> inSizes = {batch, 16}, outSizes = {batch, width};
    std::vector<std::byte> features(*tensorBytes(dtype, outSizes));
    const TensorView in{tokens.data(), DType::I64, DeviceKind::Cpu, inSizes, {}},
        out{features.data(), dtype, DeviceKind::Cpu, outSizes, {}};
    CGC_TRY(provider_->onStream(nullptr, [&] { return model.run(entry_, {&in, 1}, {&out, 1}); }));
    return features;
  }

  const Entry entry_{.name = "encode_text",
                     .buckets = {{.inputs = {{.name = "text", .dtype = DType::I64, .sizes = {}}},
                                  .outputs = {{.name = "features", .sizes = {}}}}}};
  std::unique_ptr<OpProvider> provider_;
};

TEST_F(ScriptModelTest, ComputesWhatTheReferenceComputes) {
  const std::string path = openclipModel("tiny", "fp32");
  std::vector<int64_t> tokens(3 * 16);
  for (size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = int64_t(i * 7 % 40);
  const std::vector<int64_t> sizes = {3, 16};
  for (const auto precision : {std::optional<DType>(), std::optional(DType::F16)}) {
    auto model = provider_->loadScript(path, precision);
    ASSERT_TRUE(model.isOk()) << model.status().message();
    EXPECT_TRUE((*model)->hasMethod("encode_text"));
    EXPECT_FALSE((*model)->hasMethod("encode_sound"));
    auto reference = frontend::loadReference(path, DeviceKind::Cpu, precision, false);
    ASSERT_TRUE(reference.isOk()) << reference.status().message();
    const TensorView in{tokens.data(), DType::I64, DeviceKind::Cpu, sizes, {}};
    const auto expected = (*reference)->run("encode_text", {&in, 1}, {});
    ASSERT_TRUE(expected.isOk()) << expected.status().message();
    const auto features = run(**model, tokens, precision.value_or(DType::F32));
    ASSERT_TRUE(features.isOk()) << features.status().message();
    EXPECT_EQ(*features, (*expected)[0].bytes);
  }
}

TEST_F(ScriptModelTest, SaysWhatDoesNotFit) {
  auto model = provider_->loadScript(openclipModel("tiny", "fp32"), {});
  ASSERT_TRUE(model.isOk()) << model.status().message();
  std::vector<int64_t> tokens(2 * 16);
  const Status sizes = run(**model, tokens, DType::F32, 31).status();
  EXPECT_EQ(sizes.code(), Code::Usage);
  EXPECT_THAT(sizes.message(), HasSubstr("output 'features' is [2,32], and [2,31] was given"));
  const Status dtype = run(**model, tokens, DType::F16).status();
  EXPECT_EQ(dtype.code(), Code::Failed);
  EXPECT_THAT(dtype.message(), AllOf(HasSubstr("Float instead of f16"),
                                     HasSubstr("the file that the plan was compiled from")));
  tokens[3] = 1 << 20; // LibTorch's own error, without a stack of C++ frames.
  const Status index = run(**model, tokens, DType::F32).status();
  EXPECT_EQ(index.code(), Code::Failed);
  EXPECT_THAT(index.message(), HasSubstr("index out of range"));
}

TEST_F(ScriptModelTest, KnowsThePlansOfItsModel) {
  auto model = provider_->loadScript(openclipModel("tiny", "fp32"), DType::F16);
  ASSERT_TRUE(model.isOk()) << model.status().message();
  const Weight known{.name = "positional_embedding", .dtype = DType::F16, .sizes = {16, 64}};
  const auto check = [&](const Entry &entry, std::vector<Weight> weights) {
    PlanData plan;
    plan.entries = {entry, {.name = "group", .buckets = {{}}}};
    plan.weights = std::move(weights);
    return (*model)->checkPlan(plan);
  };
  const Status same = check(entry_, {known,
                                     {.name = "constant.3", .sizes = {7}},
                                     {.name = "anything", .sizes = {7}, .isComputed = true}});
  EXPECT_TRUE(same.isOk()) << same.message();
  Weight other = known;
  other.sizes = {16, 32};
  EXPECT_THAT(check(entry_, {known, other}).message(),
              HasSubstr("weight 'positional_embedding' of the plan is [16,32], and the model has "
                        "[16,64]"));
  other.name = "visual.other";
  const Status absent = check(entry_, {other});
  EXPECT_EQ(absent.code(), Code::Usage);
  EXPECT_THAT(absent.message(), HasSubstr("the model has none of this name"));
  Entry renamed = entry_;
  renamed.buckets[0].inputs[0].name = "tokens";
  EXPECT_THAT(check(renamed, {}).message(),
              HasSubstr("method 'encode_text' has no parameter 'tokens'"));
}

TEST_F(ScriptModelTest, RefusesFilesThatAreNoModels) {
  EXPECT_EQ(provider_->loadScript("missing.pt", {}).status().code(), Code::InvalidFile);
  const std::string path = (std::filesystem::path(testing::TempDir()) / "no_model.pt").string();
  std::ofstream(path) << "no model";
  const Status refused = provider_->loadScript(path, {}).status();
  EXPECT_EQ(refused.code(), Code::InvalidFile);
  EXPECT_THAT(refused.message(), AllOf(HasSubstr(path), HasSubstr("as TorchScript")));
}

} // namespace
} // namespace cgc::test
