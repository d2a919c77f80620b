// lookUpRows: rows by integers of either width and sign; other forms are left to kernels or
// LibTorch.
#include "driver/constant_lookup.h"

#include "ir/text/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace cgc::driver {
namespace {

template <class T>
std::shared_ptr<const ir::TensorData> denseTensor(DType dtype, const ir::Dims &sizes,
                                                  const std::vector<T> &values) {
  return ir::TensorData::copyOf(
      ir::TensorType::dense(dtype, sizes),
      {reinterpret_cast<const std::byte *>(values.data()), values.size() * sizeof(T)});
}

/// The elements of `call` on %x, i16[3,2] with the elements 1 to 6, and `index`; nothing if they
/// are not looked up.
std::vector<int16_t> lookedUp(const std::string &type, const std::string &call,
                              const std::shared_ptr<const ir::TensorData> &index) {
  ir::Diagnostics diagnostics;
  const auto root = ir::parseModule("module @root {\ngraph @f(%x: i16[3,2], %i: " + type +
                                        ") {\n  %0 = " + call + "\n  output %0\n}\n}\n",
                                    "test.cgir", diagnostics);
  EXPECT_TRUE(root) << diagnostics.render();
  if (!root)
    return {};
  const ir::Value *result = root->findGraph("f")->output()->args()[0].value();
  const auto table = denseTensor<int16_t>(DType::I16, {3, 2}, {1, 2, 3, 4, 5, 6});
  const auto data = lookUpRows(*result->node(), {table, index});
  std::vector<int16_t> elements(data ? data->bytes().size() / sizeof(int16_t) : 0);
  if (data) {
    EXPECT_EQ(data->type().sizes, result->tensor().sizes);
    std::memcpy(elements.data(), data->bytes().data(), data->bytes().size());
  }
  return elements;
}

constexpr const char *kIndexRows = "aten.index(%x, [%i]) : i16[2,2]";

TEST(ConstantLookup, CopiesRows) {
  EXPECT_THAT(lookedUp("i64[2]", kIndexRows, denseTensor<int64_t>(DType::I64, {2}, {2, -3})),
              ::testing::ElementsAre(5, 6, 1, 2));
  EXPECT_THAT(lookedUp("i32[2]", kIndexRows, denseTensor<int32_t>(DType::I32, {2}, {-1, 1})),
              ::testing::ElementsAre(5, 6, 3, 4));
  EXPECT_THAT(lookedUp("i64[1,2]", "aten.index(%x, [%i]) : i16[1,2,2]",
                       denseTensor<int64_t>(DType::I64, {1, 2}, {0, 0})),
              ::testing::ElementsAre(1, 2, 1, 2));
}

TEST(ConstantLookup, LeavesOtherForms) {
  EXPECT_THAT(lookedUp("i64[2]", kIndexRows, denseTensor<int64_t>(DType::I64, {2}, {0, 3})),
              ::testing::IsEmpty());
  EXPECT_THAT(lookedUp("i64[2]", kIndexRows, denseTensor<int64_t>(DType::I64, {2}, {-4, 0})),
              ::testing::IsEmpty());
  EXPECT_THAT(lookedUp("i64[2]", "aten.index(%x, [none, %i]) : i16[3,2]",
                       denseTensor<int64_t>(DType::I64, {2}, {0, 1})),
              ::testing::IsEmpty());
  EXPECT_THAT(lookedUp("i64[2]", "aten.index_select(%x, %i) {dim=0} : i16[2,2]",
                       denseTensor<int64_t>(DType::I64, {2}, {0, 1})),
              ::testing::IsEmpty());
}

} // namespace
} // namespace cgc::driver
