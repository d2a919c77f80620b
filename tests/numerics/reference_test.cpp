// Reference: LibTorch runs a method as the reference for cgc.
#include "frontend/frontend.h"
#include "tests/numerics/test_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace cgc::frontend {
namespace {

using test::smallModel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct ReferenceInput {
  std::vector<float> values;
  std::vector<int64_t> sizes;
  TensorView view() { return {values.data(), DType::F32, DeviceKind::Cpu, sizes, {}}; }
};

std::vector<float> asFloats(const HostTensor &tensor) {
  EXPECT_EQ(tensor.dtype, DType::F32);
  std::vector<float> values(tensor.bytes.size() / sizeof(float));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

TEST(Reference, RunsAMethodAndNamesDictOutputs) {
  auto reference = loadReference(smallModel("dict_output"), DeviceKind::Cpu, std::nullopt);
  ASSERT_TRUE(reference.isOk()) << reference.status().message();
  ReferenceInput x{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {3, 4}};
  TensorView inputs[] = {x.view()};
  auto outputs = (*reference)->run("forward", inputs);
  ASSERT_TRUE(outputs.isOk()) << outputs.status().message();
  ASSERT_EQ(outputs->size(), 2u);
  EXPECT_EQ((*outputs)[0].name, "doubled");
  EXPECT_EQ((*outputs)[1].name, "rows");
  EXPECT_THAT((*outputs)[1].sizes, ElementsAre(3));
  EXPECT_THAT(asFloats((*outputs)[1]), ElementsAre(10, 26, 42));
}

TEST(Reference, LeavesInputsAlone) {
  auto reference = loadReference(smallModel("in_place"), DeviceKind::Cpu, std::nullopt);
  ASSERT_TRUE(reference.isOk());
  ReferenceInput x{{-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {3, 4}};
  std::vector<float> before = x.values;
  TensorView inputs[] = {x.view()};
  auto outputs = (*reference)->run("forward", inputs);
  ASSERT_TRUE(outputs.isOk());
  EXPECT_EQ(x.values, before);
  EXPECT_FLOAT_EQ(asFloats((*outputs)[0])[0], 0.5f - 2.0f);
}

TEST(Reference, WidensParametersAndBakedCasts) {
  // The file computes in fp16 and returns fp16; widened, no rounding to fp16 remains.
  ReferenceInput x{{0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f, 0.8f, 0.9f, 1.0f, 1.1f, 1.2f},
                   {3, 4}};
  TensorView inputs[] = {x.view()};
  auto plain = loadReference(smallModel("casts"), DeviceKind::Cpu, std::nullopt);
  auto wide = loadReference(smallModel("casts"), DeviceKind::Cpu, DType::F64);
  ASSERT_TRUE(plain.isOk() && wide.isOk());
  auto narrowOutput = (*plain)->run("forward", inputs);
  auto wideOutput = (*wide)->run("forward", inputs);
  ASSERT_TRUE(narrowOutput.isOk()) << narrowOutput.status().message();
  ASSERT_TRUE(wideOutput.isOk()) << wideOutput.status().message();
  EXPECT_EQ((*narrowOutput)[0].dtype, DType::F16);
  ASSERT_EQ((*wideOutput)[0].dtype, DType::F64);
  double row[4];
  std::memcpy(row, (*wideOutput)[0].bytes.data(), sizeof(row));
  // A softmax with any rounding to fp16 misses 1 by far more.
  EXPECT_NEAR(row[0] + row[1] + row[2] + row[3], 1.0, 1e-14);
}

TEST(Reference, NarrowsParametersInputsAndBakedCasts) {
  // The file casts to fp32 before its linear and to fp16 after it.
  ReferenceInput x{{0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f, 0.8f, 0.9f, 1.0f, 1.1f, 1.2f},
                   {3, 4}};
  TensorView inputs[] = {x.view()};
  for (DType dtype : {DType::F16, DType::BF16}) {
    auto narrowed = loadReference(smallModel("casts"), DeviceKind::Cpu, dtype);
    ASSERT_TRUE(narrowed.isOk()) << narrowed.status().message();
    auto outputs = (*narrowed)->run("forward", inputs);
    ASSERT_TRUE(outputs.isOk()) << outputs.status().message();
    for (const HostTensor &output : *outputs)
      EXPECT_EQ(output.dtype, dtype);
  }
}

TEST(Reference, WidensTensorsInListsTuplesAndDicts) {
  ReferenceInput x{{0, 0, 0, 0}, {1, 4}};
  TensorView inputs[] = {x.view()};
  auto wide = loadReference(smallModel("containers"), DeviceKind::Cpu, DType::F64);
  ASSERT_TRUE(wide.isOk()) << wide.status().message();
  auto outputs = (*wide)->run("forward", inputs);
  ASSERT_TRUE(outputs.isOk()) << outputs.status().message();
  for (const HostTensor &output : *outputs)
    EXPECT_EQ(output.dtype, DType::F64);
}

TEST(Reference, ReportsMisuse) {
  auto reference = loadReference(smallModel("dict_output"), DeviceKind::Cpu, std::nullopt);
  ASSERT_TRUE(reference.isOk());
  auto noMethod = (*reference)->run("encode", {});
  EXPECT_EQ(noMethod.status().code(), Code::Usage);
  EXPECT_THAT(noMethod.status().message(), HasSubstr("encode"));
  EXPECT_EQ((*reference)->run("forward", {}).status().code(), Code::Usage);
  // LibTorch reports a mismatched shape: one line, without frames.
  auto linear = loadReference(smallModel("called_twice"), DeviceKind::Cpu, std::nullopt);
  ASSERT_TRUE(linear.isOk());
  ReferenceInput x{{1, 2, 3}, {1, 3}};
  TensorView inputs[] = {x.view()};
  auto failed = (*linear)->run("forward", inputs);
  EXPECT_EQ(failed.status().code(), Code::Failed);
  EXPECT_THAT(failed.status().message(), HasSubstr("shapes"));
  EXPECT_THAT(failed.status().message(), Not(HasSubstr("\n")));
}

} // namespace
} // namespace cgc::frontend
