// Tests of the model of a bucket's time: what counts, not how much.
#include "backend/time_model.h"

#include "runtime/plan/branches.h"

#include <gtest/gtest.h>

namespace cgc::backend {
namespace {

constexpr TensorId id(uint32_t index) {
  return TensorId{index};
}

TensorRef matrix(int64_t rows, int64_t columns, DType dtype = DType::F32) {
  return {.slot = {}, .dtype = dtype, .sizes = {rows, columns}, .strides = {columns, 1}};
}

/// A bucket of `count` products [m,k] x [k,n].
Bucket products(int64_t m, int64_t n, int64_t k, size_t count = 1, DType dtype = DType::F32) {
  Bucket bucket;
  bucket.tensors = {matrix(m, k, dtype), matrix(k, n, dtype), matrix(m, n, dtype)};
  const AtenCall call{.op = "aten::mm",
                      .overload = "out",
                      .args = {id(0), id(1)},
                      .outputs = {id(2)},
                      .writesOut = true};
  bucket.records.assign(count, {call});
  return bucket;
}

double onCpu(const Bucket &bucket) {
  return estimateMicros(bucket, DeviceKind::Cpu, 0);
}

TEST(TimeModel, AddsUpRecords) {
  EXPECT_EQ(onCpu(Bucket{}), 0);
  const double one = onCpu(products(64, 64, 64));
  EXPECT_GT(one, 0);
  EXPECT_DOUBLE_EQ(onCpu(products(64, 64, 64, 3)), 3 * one);
}

TEST(TimeModel, OfBranchesTheLongestCounts) {
  const double one = onCpu(products(64, 64, 64));
  Bucket bucket = products(64, 64, 64, 7);
  for (size_t i = 1; i < 6; ++i)
    bucket.records[i].branch = i < 3 ? 1 : 2;
  EXPECT_DOUBLE_EQ(onCpu(bucket), 5 * one); // The first, three of branch 2, the last.
  bucket.records[3].branch = 0;
  EXPECT_DOUBLE_EQ(onCpu(bucket), 7 * one);
}

TEST(TimeModel, ALargeProductTakesTheTimeOfItsMultiplications) {
  const double small = onCpu(products(1024, 1024, 1024)), large = onCpu(products(2048, 1024, 1024));
  EXPECT_NEAR(large / small, 2, 0.01);
}

TEST(TimeModel, AProductOfOneRowTakesTheTimeOfItsMatrix) {
  const double one = onCpu(products(1, 4096, 4096)), two = onCpu(products(2, 4096, 4096));
  EXPECT_LT(two, 1.01 * one);
}

TEST(TimeModel, AGpuMultipliesHalfPrecisionFaster) {
  const auto onGpu = [](DType dtype) {
    return estimateMicros(products(4096, 4096, 4096, 1, dtype), DeviceKind::Cuda, 132);
  };
  EXPECT_LT(onGpu(DType::F16), onGpu(DType::F32));
}

TEST(TimeModel, ARepeatedElementIsReadOnce) {
  Bucket bucket;
  bucket.tensors = {matrix(4096, 4096), matrix(4096, 4096)};
  bucket.records = {{AtenCall{.op = "aten::neg",
                              .overload = "out",
                              .args = {id(0)},
                              .outputs = {id(1)},
                              .writesOut = true}}};
  const double dense = onCpu(bucket);
  bucket.tensors[0].strides = {0, 1};
  EXPECT_LT(onCpu(bucket), 0.6 * dense);
}

TEST(TimeModel, EveryBranchIsComparedWithTheOthers) {
  const double one = onCpu(products(64, 64, 64));
  Bucket bucket = products(64, 64, 64, kMaxBranches);
  for (uint32_t i = 0; i < kMaxBranches; ++i)
    bucket.records[i].branch = i + 1;
  EXPECT_DOUBLE_EQ(onCpu(bucket), one);
}

/// Reads two tensors, whose elements count as they lie in memory, and writes a third one.
Bucket call(const std::string &op, std::vector<std::vector<int64_t>> sizes) {
  Bucket bucket;
  for (std::vector<int64_t> &shape : sizes) {
    std::vector<int64_t> strides(shape.size(), 1);
    for (size_t d = shape.size() - 1; d-- > 0;)
      strides[d] = strides[d + 1] * shape[d + 1];
    bucket.tensors.push_back({.slot = {}, .dtype = DType::F32, .sizes = shape, .strides = strides});
  }
  bucket.records = {{AtenCall{
      .op = op, .overload = "out", .args = {id(0), id(1)}, .outputs = {id(2)}, .writesOut = true}}};
  return bucket;
}

TEST(TimeModel, AttentionIsTwoProducts) {
  const int64_t n = 1024;
  const double attention =
      onCpu(call("aten::scaled_dot_product_attention", {{n, n}, {n, n}, {n, n}}));
  EXPECT_NEAR(attention / onCpu(products(n, n, n)), 2, 0.01);
}

TEST(TimeModel, WhatIsAddedToAProductTakesNoTime) {
  const int64_t m = 1024, n = 256, k = 2048;
  for (const char *op : {"aten::addmm", "aten::baddbmm"}) {
    Bucket bucket = products(m, n, k);
    const double product = onCpu(bucket);
    bucket.tensors.push_back(matrix(1, n));
    auto &call = std::get<AtenCall>(bucket.records[0].op);
    call.op = op;
    call.args = {id(3), id(0), id(1), int64_t{1}, int64_t{1}};
    EXPECT_NEAR(onCpu(bucket) / product, 1, 0.01) << op;
  }
}

TEST(TimeModel, AConvolutionIsAProductWithItsWindows) {
  const double convolution =
      onCpu(call("aten::convolution", {{1, 64, 64, 64}, {128, 64, 1, 1}, {1, 128, 64, 64}}));
  EXPECT_NEAR(convolution / onCpu(products(64 * 64, 128, 64)), 1, 0.01);
}

TEST(TimeModel, GapsBetweenRowsAreNoTraffic) {
  Bucket bucket = call("aten::neg", {{4096, 1024}, {4096, 1024}, {4096, 1024}});
  const double dense = onCpu(bucket);
  bucket.tensors[0].strides = {4096, 1};
  EXPECT_DOUBLE_EQ(onCpu(bucket), dense);
}

} // namespace
} // namespace cgc::backend
