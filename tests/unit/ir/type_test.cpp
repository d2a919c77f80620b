// Types: text form, contiguity, parameter bytes.
#include "ir/type.h"

#include <gtest/gtest.h>

#include <array>

namespace cgc::ir {
namespace {

TEST(Type, TextRoundTrip) {
  for (const char *text :
       {"f32[]", "f16[1,50,768]", "bool[0,3]", "f32[2,3][1,2]", "i64[77]@cuda",
        "bf16[2,3][0,1]@cuda", "f32[1,3][7,1]", "u8[2]", "i8[2]", "i16[2]", "i32[2]", "f64[2]"}) {
    auto type = parseTensorType(text);
    ASSERT_TRUE(type) << text;
    EXPECT_EQ(toString(*type), text);
  }
}

TEST(Type, ContiguousStridesAreNotPrinted) {
  EXPECT_EQ(toString(*parseTensorType("f32[2,3][3,1]")), "f32[2,3]");
}

TEST(Type, WrongTextIsRefused) {
  for (const char *text :
       {"", "f32", "[2]", "f33[2]", "f32[2", "f32[2,]", "f32[,2]", "f32[-1]", "f32[2]x", "f32[2]@",
        "f32[2]@tpu", "f32[2][1,1]", "f32[2][1][1]", "f32[2.0]", "dynamic",
        "f32[9999999999999999999]", "f32[3037000500,3037000500]"})
    EXPECT_FALSE(parseTensorType(text)) << text;
}

TEST(Type, Contiguity) {
  EXPECT_TRUE(TensorType::dense(DType::F32, {2, 3, 4}).isContiguous());
  EXPECT_EQ(TensorType::dense(DType::F32, {2, 3, 4}).strides, (Dims{12, 4, 1}));
  EXPECT_FALSE(parseTensorType("f32[2,3][1,2]")->isContiguous());
  EXPECT_FALSE(parseTensorType("f32[2,3][0,1]")->isContiguous());
  // Strides do not matter in dimensions of size 1 or in an empty tensor.
  EXPECT_TRUE(parseTensorType("f32[1,3][77,1]")->isContiguous());
  EXPECT_TRUE(parseTensorType("f32[0,3][1,9]")->isContiguous());
}

TEST(Type, Counts) {
  auto type = TensorType::dense(DType::F16, {2, 3, 4});
  EXPECT_EQ(type.numElements(), 24);
  EXPECT_EQ(type.numBytes(), 48u);
  EXPECT_EQ(TensorType::dense(DType::F64, {}).numBytes(), 8u);
  EXPECT_EQ(TensorType::dense(DType::F64, {5, 0}).numBytes(), 0u);
}

TEST(Type, DynamicAndEquality) {
  EXPECT_TRUE(Type().isDynamic());
  EXPECT_EQ(toString(Type()), "dynamic");
  Type a = TensorType::dense(DType::F32, {2});
  EXPECT_EQ(a, Type(TensorType::dense(DType::F32, {2})));
  EXPECT_NE(a, Type(TensorType::dense(DType::F32, {2}, DeviceKind::Cuda)));
  EXPECT_NE(a, Type());
}

TEST(TensorData, CopyOutlivesItsSource) {
  std::array<float, 2> values{1, 2};
  auto bytes = llvm::ArrayRef(reinterpret_cast<const std::byte *>(values.data()), sizeof(values));
  auto data = TensorData::copyOf(TensorType::dense(DType::F32, {2}), bytes);
  values = {0, 0};
  EXPECT_EQ(reinterpret_cast<const float *>(data->bytes().data())[1], 2);
}

} // namespace
} // namespace cgc::ir
