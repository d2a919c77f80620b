// Tests of BatchReader: the order of samples, and the memory of batches in use.
#include "tools/cgc/train/batch_reader.h"

#include "data_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <span>

namespace cgc::tool {
namespace {

class BatchReaderTest : public testing::Test {
protected:
  /// A dataset of these values, of which two make a batch.
  template <class T> Dataset data(const std::vector<T> &values, DType dtype = DType::F32) {
    writeBytes(folder / "x.npy",
               npyText(tensorOf(dtype, {static_cast<int64_t>(values.size())}, values)));
    IoTensor input;
    input.name = "x";
    input.dtype = dtype;
    input.sizes = {2};
    auto opened = Dataset::open({"x=" + std::string(folder / "x.npy")}, {input});
    EXPECT_TRUE(opened.isOk()) << opened.status().message();
    return std::move(*opened);
  }
  static std::vector<float> values(const Batch &batch) {
    const auto *data = static_cast<const float *>(batch.inputs[0].data);
    return {data, data + 2};
  }
  test::TempFolder folder;
};

TEST_F(BatchReaderTest, RepeatsWholeBatchesInOrder) {
  const Dataset five = data<float>({0, 1, 2, 3, 4});
  const auto reader = BatchReader::create(five, {});
  ASSERT_TRUE(reader.isOk());
  for (const std::vector<float> &expected :
       {std::vector<float>{0, 1}, {2, 3}, {0, 1}, {2, 3}, {0, 1}}) {
    EXPECT_EQ(values((*reader)->next()), expected);
    (*reader)->release();
  }
}

TEST_F(BatchReaderTest, ABatchDependsOnItsNumberAlone) {
  std::vector<float> numbers(21);
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>(i);
  const Dataset many = data(numbers);
  const auto read = [&](uint64_t first, size_t count) {
    std::vector<std::vector<float>> batches;
    const auto reader =
        BatchReader::create(many, {.shuffle = true, .seed = 5, .first = first, .slots = 3});
    EXPECT_TRUE(reader.isOk());
    for (size_t i = 0; i < count; ++i) {
      batches.push_back(values((*reader)->next()));
      (*reader)->release();
    }
    return batches;
  };
  const auto whole = read(0, 30), rest = read(13, 17);
  EXPECT_EQ(std::vector(whole.begin() + 13, whole.end()), rest);
  EXPECT_NE(std::vector(whole.begin(), whole.begin() + 10),
            std::vector(whole.begin() + 10, whole.begin() + 20));
}

TEST_F(BatchReaderTest, ABatchInUseKeepsItsMemory) {
  const Dataset six = data<float>({0, 1, 2, 3, 4, 5});
  const auto reader = BatchReader::create(six, {.slots = 2});
  ASSERT_TRUE(reader.isOk());
  const Batch &first = (*reader)->next();
  const Batch &second = (*reader)->next();
  EXPECT_EQ(values(first), (std::vector<float>{0, 1}));
  (*reader)->release();
  EXPECT_EQ(values((*reader)->next()), (std::vector<float>{4, 5}));
  EXPECT_EQ(values(second), (std::vector<float>{2, 3}));
}

TEST_F(BatchReaderTest, FindsNanAndInfinity) {
  const Dataset numbers = data<float>({0, 1, NAN, 3, 4, -INFINITY});
  const auto reader = BatchReader::create(numbers, {});
  ASSERT_TRUE(reader.isOk());
  for (const bool isFinite : {true, false, false, true}) {
    EXPECT_EQ((*reader)->next().isFinite, isFinite);
    (*reader)->release();
  }
}

/// Several threads copy a batch of two rows of 4 MiB.
TEST_F(BatchReaderTest, ThreadsCopyLargeBatches) {
  constexpr size_t kRow = size_t(1) << 20;
  std::vector<float> numbers(6 * kRow);
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>(i % 4099);
  numbers[4 * kRow - 1] = NAN; // The last of the second batch.
  writeBytes(folder / "x.npy", npyText(tensorOf(DType::F32, {6, kRow}, numbers)));
  IoTensor input;
  input.name = "x";
  input.dtype = DType::F32;
  input.sizes = {2, kRow};
  const auto rows = Dataset::open({"x=" + std::string(folder / "x.npy")}, {input});
  ASSERT_TRUE(rows.isOk()) << rows.status().message();
  const auto reader = BatchReader::create(*rows, {.threads = 3});
  ASSERT_TRUE(reader.isOk());
  for (const size_t batch : {0, 1, 2, 0}) {
    const Batch &read = (*reader)->next();
    EXPECT_EQ(read.isFinite, batch != 1);
    const auto *const data = static_cast<const float *>(read.inputs[0].data);
    // As bits: one is NaN.
    EXPECT_TRUE(
        std::ranges::equal(std::as_bytes(std::span(data, 2 * kRow)),
                           std::as_bytes(std::span(numbers).subspan(batch * 2 * kRow, 2 * kRow))))
        << batch;
    (*reader)->release();
  }
}

/// The largest number, the smallest NaN and infinity of each dtype, as bits.
TEST_F(BatchReaderTest, FindsNanAndInfinityOfOtherDtypes) {
  const auto expectFound = [](const Dataset &numbers) {
    const auto reader = BatchReader::create(numbers, {});
    ASSERT_TRUE(reader.isOk());
    for (const bool isFinite : {true, false, false}) {
      EXPECT_EQ((*reader)->next().isFinite, isFinite);
      (*reader)->release();
    }
  };
  expectFound(data<uint16_t>({0x7bff, 0xfbff, 0x7c01, 0, 0, 0xfc00}, DType::F16));
  expectFound(data<double>({DBL_MAX, -DBL_MAX, NAN, 0, 0, -INFINITY}, DType::F64));
}

TEST(SampleOrder, IsAPermutationForEachSeedAndPass) {
  auto order = sampleOrder(100, true, 1, 0);
  EXPECT_NE(order, sampleOrder(100, true, 2, 0));
  EXPECT_NE(order, sampleOrder(100, true, 1, 1));
  EXPECT_EQ(order, sampleOrder(100, true, 1, 0));
  std::ranges::sort(order);
  EXPECT_EQ(order, sampleOrder(100, false, 1, 0));
}

} // namespace
} // namespace cgc::tool
