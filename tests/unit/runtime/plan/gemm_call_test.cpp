// GemmCall: conversion to a record and back, and every way in which a record is no GEMM.
#include "runtime/plan/gemm_call.h"
#include "runtime/plan/plan_file.h"
#include "tests/unit/runtime/sample_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace cgc::test {
namespace {

using testing::HasSubstr;

/// y[3,5] = x[3,8] w[5,8]^T + b + r, with x in rows of 10.
PlanData gemmPlan() {
  PlanData plan;
  plan.target = DeviceKind::Cuda;
  plan.weights = {{.name = "w", .dtype = DType::F16, .sizes = {5, 8}},
                  {.name = "b", .dtype = DType::F16, .sizes = {5}}};
  Bucket bucket;
  bucket.inputs = {{.name = "x", .dtype = DType::F16, .sizes = {3, 10}},
                   {.name = "r", .dtype = DType::F16, .sizes = {3, 5}}};
  bucket.outputs = {{.name = "y", .dtype = DType::F16, .sizes = {3, 5}}};
  bucket.arenaBytes = 1024;
  bucket.tensors = {{{BufferKind::Input, 0, 0}, DType::F16, {3, 8}, {10, 1}},
                    dense(BufferKind::Weight, 0, 0, DType::F16, {5, 8}),
                    dense(BufferKind::Weight, 1, 0, DType::F16, {5}),
                    dense(BufferKind::Input, 1, 0, DType::F16, {3, 5}),
                    dense(BufferKind::Output, 0, 0, DType::F16, {3, 5}),
                    dense(BufferKind::Arena, 0, 256, DType::U8, {768})};
  GemmCall gemm;
  gemm.x = id(0);
  gemm.weight = id(1);
  gemm.bias = id(2);
  gemm.residual = id(3);
  gemm.d = id(4);
  gemm.workspace = id(5);
  bucket.records = {{libraryCall(gemm)}};
  plan.entries = {{"main", {bucket}}};
  return plan;
}

TEST(Gemm, ComesBackFromItsRecord) {
  const PlanData plan = gemmPlan();
  ASSERT_TRUE(validate(plan).isOk()) << validate(plan).message();
  const Bucket &bucket = plan.entries[0].buckets[0];
  LibraryCall call = std::get<LibraryCall>(bucket.records[0].op);
  EXPECT_TRUE(isGemm(call));
  EXPECT_EQ(libraryCall(*gemmCall(call, bucket.tensors)), call);
  call.reads[2] = call.reads[3] = kNoTensor;
  call.ints = {1, 0};
  const Result<GemmCall> plain = gemmCall(call, bucket.tensors);
  ASSERT_TRUE(plain.isOk()) << plain.status().message();
  EXPECT_TRUE(plain->relu);
  EXPECT_EQ(plain->bias, kNoTensor);
  EXPECT_EQ(libraryCall(*plain), call);
}

TEST(Gemm, ARowCountOfOneNeedsNoStride) {
  PlanData plan = gemmPlan();
  Bucket &bucket = plan.entries[0].buckets[0];
  bucket.tensors[0].sizes = {1, 8};
  bucket.tensors[0].strides = {0, 1};
  bucket.tensors[3].sizes = bucket.tensors[4].sizes = {1, 5};
  bucket.outputs[0].sizes = {1, 5};
  EXPECT_TRUE(validate(plan).isOk()) << validate(plan).message();
  EXPECT_EQ(rowStride(bucket.tensors[0]), 8);
}

/// The plan with x and w stored as columns, and without an epilogue.
PlanData transposedPlan(DType result) {
  PlanData plan = gemmPlan();
  Bucket &bucket = plan.entries[0].buckets[0];
  bucket.inputs[0].sizes = {8, 4};
  bucket.tensors[0].strides = {1, 4};
  plan.weights[0].sizes = {8, 5};
  bucket.tensors[1].strides = {1, 5};
  bucket.outputs[0].dtype = bucket.tensors[4].dtype = result;
  auto &call = std::get<LibraryCall>(bucket.records[0].op);
  call.reads[2] = call.reads[3] = kNoTensor;
  return plan;
}

TEST(Gemm, OperandsMayHaveDenseColumns) {
  for (const DType result : {DType::F16, DType::F32}) {
    const PlanData plan = transposedPlan(result);
    EXPECT_TRUE(validate(plan).isOk()) << validate(plan).message();
    const Bucket &bucket = plan.entries[0].buckets[0];
    EXPECT_TRUE(isTransposed(bucket.tensors[0]));
    EXPECT_FALSE(isTransposed(bucket.tensors[4]));
  }
}

TEST(Gemm, ColumnsMayNotOverlap) {
  PlanData plan = transposedPlan(DType::F16);
  plan.entries[0].buckets[0].tensors[0].strides = {1, 2};
  EXPECT_THAT(validate(plan).message(), HasSubstr("rows do not overlap"));
}

TEST(Gemm, AWiderResultHasNoEpilogue) {
  PlanData plan = transposedPlan(DType::F32);
  std::get<LibraryCall>(plan.entries[0].buckets[0].records[0].op).ints = {1, 0};
  EXPECT_THAT(validate(plan).message(), HasSubstr("differ in element type"));
}

TEST(Gemm, TheWorkspaceMayLieDirectlyBehindTheResult) {
  const PlanData plan = gemmPlan();
  std::vector<TensorRef> tensors = plan.entries[0].buckets[0].tensors;
  const auto &call = std::get<LibraryCall>(plan.entries[0].buckets[0].records[0].op);
  tensors[4] = dense(BufferKind::Arena, 0, 256 - 30, DType::F16, {3, 5});
  EXPECT_TRUE(gemmCall(call, tensors).isOk()) << gemmCall(call, tensors).status().message();
  tensors[4].slot.offset += 2;
  EXPECT_THAT(gemmCall(call, tensors).status().message(), HasSubstr("apart from the result"));
}

TEST(Gemm, ItsAlgorithmSurvivesTheFile) {
  PlanData plan = gemmPlan();
  std::get<LibraryCall>(plan.entries[0].buckets[0].records[0].op).algorithm = {
      std::byte{0}, std::byte{0xff}, std::byte{0}};
  const Result<Plan> loaded =
      Plan::fromMemory(plan, {std::vector<std::byte>(80), std::vector<std::byte>(10)});
  ASSERT_TRUE(loaded.isOk()) << loaded.status().message();
  EXPECT_EQ(loaded->data().entries, plan.entries);
}

struct GemmViolation {
  const char *name;
  std::function<void(Bucket &, LibraryCall &)> breakIt;
  const char *message;
};

class NoGemm : public testing::TestWithParam<GemmViolation> {};

TEST_P(NoGemm, IsNamed) {
  PlanData plan = gemmPlan();
  Bucket &bucket = plan.entries[0].buckets[0];
  GetParam().breakIt(bucket, std::get<LibraryCall>(bucket.records[0].op));
  const Status status = validate(plan);
  EXPECT_EQ(status.code(), Code::InvalidFile);
  EXPECT_THAT(status.message(), HasSubstr(GetParam().message));
  EXPECT_THAT(status.message(), HasSubstr("record 0 (cublaslt.matmul)"));
}

// A tensor of the bucket with other sizes or strides is still inside its buffer: what refuses it is
// the GEMM.
INSTANTIATE_TEST_SUITE_P(
    Records, NoGemm,
    testing::Values(
        GemmViolation{"Reads", [](auto &, auto &c) { c.reads.pop_back(); }, "number of arguments"},
        GemmViolation{"Writes", [](auto &, auto &c) { c.writes.pop_back(); },
                      "number of arguments"},
        GemmViolation{"Ints", [](auto &, auto &c) { c.ints.pop_back(); }, "number of arguments"},
        GemmViolation{"Floats", [](auto &, auto &c) { c.floats = {1}; }, "number of arguments"},
        GemmViolation{"NoX", [](auto &, auto &c) { c.reads[0] = kNoTensor; }, "both operands"},
        GemmViolation{"NoWeight", [](auto &, auto &c) { c.reads[1] = kNoTensor; }, "both operands"},
        GemmViolation{"Relu", [](auto &, auto &c) { c.ints[0] = 2; }, "0 or 1"},
        GemmViolation{"Tf32", [](auto &, auto &c) { c.ints[1] = -1; }, "0 or 1"},
        GemmViolation{"Tf32OfF16", [](auto &, auto &c) { c.ints[1] = 1; }, "tf32 is for f32"},
        GemmViolation{"ReluAndResidual", [](auto &, auto &c) { c.ints[0] = 1; }, "residual too"},
        GemmViolation{"Integers",
                      [](auto &b, auto &c) {
                        b.tensors.push_back(dense(BufferKind::Arena, 0, 0, DType::I16, {3, 8}));
                        c.reads[0] = id(6);
                      },
                      "f16, bf16 or f32"},
        GemmViolation{"MixedTypes",
                      [](auto &b, auto &c) {
                        b.tensors.push_back(dense(BufferKind::Arena, 0, 0, DType::F32, {3, 5}));
                        c.writes[0] = id(6);
                      },
                      "differ in element type"},
        GemmViolation{"Rank",
                      [](auto &b, auto &) {
                        b.tensors[1] = dense(BufferKind::Weight, 0, 0, DType::F16, {1, 5, 8});
                      },
                      "have to be matrices"},
        GemmViolation{"Empty", [](auto &b, auto &) { b.tensors[0].sizes = {0, 8}; },
                      "have to be matrices"},
        GemmViolation{"RowsOverlap", [](auto &b, auto &) { b.tensors[0].strides = {7, 1}; },
                      "have to be matrices"},
        GemmViolation{
            "RowsWithGaps",
            [](auto &b, auto &) { b.tensors[1].sizes = {5, 4}, b.tensors[1].strides = {8, 2}; },
            "have to be matrices"},
        GemmViolation{"InnerSizes", [](auto &b, auto &) { b.tensors[0].sizes = {3, 7}; },
                      "not those of a GEMM"},
        GemmViolation{"ResultRows", [](auto &b, auto &) { b.tensors[4].sizes = {2, 5}; },
                      "not those of a GEMM"},
        GemmViolation{"ResultColumns", [](auto &b, auto &) { b.tensors[4].sizes = {3, 4}; },
                      "not those of a GEMM"},
        GemmViolation{"BiasSize", [](auto &b, auto &) { b.tensors[2].sizes = {4}; },
                      "the bias has to be"},
        GemmViolation{"BiasStride",
                      [](auto &b, auto &) { b.tensors[2].sizes = {5}, b.tensors[2].strides = {0}; },
                      "the bias has to be"},
        GemmViolation{"BiasAlignment",
                      [](auto &b, auto &c) {
                        b.tensors.push_back(dense(BufferKind::Weight, 0, 2, DType::F16, {5}));
                        c.reads[2] = id(6);
                      },
                      "multiple of 16"},
        GemmViolation{"ResidualSize", [](auto &b, auto &) { b.tensors[3].sizes = {1, 5}; },
                      "the residual has to be"},
        GemmViolation{"ResidualStride", [](auto &b, auto &) { b.tensors[3].strides = {0, 1}; },
                      "the residual has to be"},
        GemmViolation{"WorkspaceType",
                      [](auto &b, auto &) {
                        b.tensors[5] = dense(BufferKind::Arena, 0, 256, DType::I8, {768});
                      },
                      "the workspace has to be"},
        GemmViolation{"WorkspaceAlignment", [](auto &b, auto &) { b.tensors[5].slot.offset = 128; },
                      "the workspace has to be"},
        GemmViolation{"WorkspaceInTheResult",
                      [](auto &b, auto &c) {
                        b.tensors.push_back(dense(BufferKind::Arena, 0, 1000, DType::F16, {3, 4}));
                        b.tensors[1].sizes[0] = b.tensors[2].sizes[0] = b.tensors[3].sizes[1] = 4;
                        c.writes[0] = id(6);
                      },
                      "the workspace has to be"}),
    [](const auto &info) { return info.param.name; });

} // namespace
} // namespace cgc::test
