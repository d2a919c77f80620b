// FullPrecision and withoutTf32: f32 GEMMs without TF32, and the host's settings restored.
#include "runtime/aten/full_precision.h"

#include "tests/numerics/default_precision.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/randn.h>

#include <gtest/gtest.h>

#include <future>

namespace cgc::test {
namespace {

using at::Float32Backend;
using at::Float32Op;
using at::Float32Precision;

at::Context &host() {
  return at::globalContext();
}

Float32Precision matmul() {
  return host().float32Precision(Float32Backend::CUDA, Float32Op::MATMUL);
}

void set(Float32Backend backend, Float32Op op, Float32Precision precision) {
  host().setFloat32Precision(backend, op, precision);
}

class FullPrecisionScope : public testing::Test {
  const DefaultFloat32Precision defaultPrecision_;
};

TEST_F(FullPrecisionScope, HasNothingToDoByDefault) {
  const Float32Precision before = matmul();
  ASSERT_NE(before, Float32Precision::TF32);
  {
    const aten::FullPrecision scope;
    EXPECT_EQ(matmul(), before);
    EXPECT_TRUE(at::NoTF32Guard::should_disable_tf32());
    EXPECT_FALSE(std::async(std::launch::async, [] {
                   return at::NoTF32Guard::should_disable_tf32();
                 }).get());
  }
  EXPECT_EQ(matmul(), before);
  EXPECT_FALSE(at::NoTF32Guard::should_disable_tf32());
}

TEST_F(FullPrecisionScope, SetsBackWhatAllowTf32Set) {
  host().setAllowTF32CuBLAS(true);
  {
    const aten::FullPrecision scope;
    EXPECT_EQ(matmul(), Float32Precision::IEEE);
  }
  EXPECT_EQ(matmul(), Float32Precision::TF32);
  EXPECT_TRUE(host().allowTF32CuBLAS()); // Throws if only half of the setting is restored.
}

TEST_F(FullPrecisionScope, SetsBackAnInheritedSettingAsInherited) {
  for (const Float32Backend parent : {Float32Backend::CUDA, Float32Backend::GENERIC}) {
    set(parent, Float32Op::ALL, Float32Precision::TF32);
    ASSERT_EQ(matmul(), Float32Precision::TF32);
    {
      const aten::FullPrecision scope;
      EXPECT_EQ(matmul(), Float32Precision::IEEE);
    }
    EXPECT_EQ(matmul(), Float32Precision::TF32);
    // The setting still follows its parent.
    set(parent, Float32Op::ALL, Float32Precision::IEEE);
    EXPECT_EQ(matmul(), Float32Precision::IEEE);
    set(parent, Float32Op::ALL, Float32Precision::NONE);
  }
}

TEST_F(FullPrecisionScope, SetsBackAnOwnSettingAsOwnBelowAnEqualParent) {
  set(Float32Backend::GENERIC, Float32Op::ALL, Float32Precision::TF32);
  set(Float32Backend::CUDA, Float32Op::ALL, Float32Precision::TF32);
  set(Float32Backend::CUDA, Float32Op::MATMUL, Float32Precision::TF32);
  {
    const aten::FullPrecision scope;
  }
  // Neither setting follows its parent.
  set(Float32Backend::GENERIC, Float32Op::ALL, Float32Precision::IEEE);
  EXPECT_EQ(host().float32Precision(Float32Backend::CUDA, Float32Op::ALL), Float32Precision::TF32);
  set(Float32Backend::CUDA, Float32Op::ALL, Float32Precision::IEEE);
  EXPECT_EQ(matmul(), Float32Precision::TF32);
}

TEST_F(FullPrecisionScope, ThreadsTakeTurns) {
  host().setAllowTF32CuBLAS(true);
  std::vector<std::future<bool>> threads;
  for (int i = 0; i < 4; ++i)
    threads.push_back(std::async(std::launch::async, [] {
      bool full = true;
      for (int run = 0; run < 1000; ++run) {
        const aten::FullPrecision scope;
        full = full && matmul() == Float32Precision::IEEE;
      }
      return full;
    }));
  for (std::future<bool> &thread : threads)
    EXPECT_TRUE(thread.get());
  EXPECT_TRUE(host().allowTF32CuBLAS());
}

/// A convolution with different numbers for each argument, in LibTorch's order.
struct Convolution {
  const char *op, *overload;
  std::vector<int64_t> image, weight;
  std::vector<std::vector<int64_t>> numbers; ///< Stride, padding, then as in the schema.
  bool transposed = false;
};

TEST(WithoutTf32, IsTheSameConvolution) {
  const Convolution convolutions[] = {
      {"aten::conv1d", "", {2, 4, 7}, {6, 2, 3}, {{2}, {1}, {2}, {}}},
      {"aten::conv2d", "", {2, 4, 6, 7}, {6, 2, 3, 3}, {{2, 1}, {1, 0}, {1, 2}, {}}},
      {"aten::conv3d", "", {2, 4, 6, 7, 5}, {6, 2, 3, 3, 2}, {{2, 1, 1}, {1}, {1, 2, 3}, {}}},
      {"aten::conv_transpose2d",
       "input",
       {2, 4, 6, 7},
       {4, 3, 3, 3},
       {{3, 2}, {1, 0}, {2, 0}, {}, {1, 2}},
       true},
      {"aten::conv_transpose3d",
       "input",
       {2, 4, 3, 4, 5},
       {4, 3, 3, 3, 2},
       {{3, 2, 1}, {1}, {2, 0, 0}, {}, {1, 2, 1}},
       true}};
  for (const Convolution &c : convolutions) {
    SCOPED_TRACE(c.op);
    EXPECT_TRUE(aten::isConvolution(c.op));
    EXPECT_TRUE(aten::multipliesMatrices(c.op));
    const at::Tensor images = at::randn(c.image), weight = at::randn(c.weight),
                     bias = at::randn({6});
    for (const at::Tensor &input : {images, images[0]})
      for (const bool biased : {true, false}) {
        std::vector<c10::IValue> args = {input, weight, biased ? c10::IValue(bias) : c10::IValue()};
        for (const std::vector<int64_t> &numbers : c.numbers)
          args.push_back(numbers.empty() ? c10::IValue(int64_t{2})
                                         : c10::IValue(numbers)); // Groups.
        auto op = c10::Dispatcher::singleton().findSchemaOrThrow(c.op, c.overload);
        std::vector<c10::IValue> stack = args;
        op.callBoxed(stack);
        const at::Tensor expected = stack.at(0).toTensor();
        at::Tensor output = at::empty_like(expected);
        aten::withoutTf32(op, args, output);
        EXPECT_EQ(op.schema().name(), "aten::_convolution");
        const auto argument = [&](const char *name) {
          return args.at(*op.schema().argumentIndexWithName(name)).toBool();
        };
        EXPECT_FALSE(argument("allow_tf32"));
        EXPECT_EQ(argument("transposed"), c.transposed);
        EXPECT_EQ(argument("deterministic"), c.transposed);
        op.callBoxed(args);
        EXPECT_TRUE(args.at(0).toTensor().equal(expected.view(output.sizes())));
        EXPECT_EQ(args.at(0).toTensor().sizes(), output.sizes());
      }
  }
  EXPECT_FALSE(aten::isConvolution("aten::linear"));
}

TEST(MultipliesMatrices, IsTrueForTheOpsThatDo) {
  for (const char *op :
       {"aten::_native_multi_head_attention", "aten::addmm", "aten::baddbmm", "aten::bmm",
        "aten::conv2d", "aten::linear", "aten::matmul", "aten::mm",
        "aten::scaled_dot_product_attention", "aten::_scaled_dot_product_attention_math"})
    EXPECT_TRUE(aten::multipliesMatrices(op)) << op;
  EXPECT_FALSE(aten::multipliesMatrices("aten::mul"));
}

} // namespace
} // namespace cgc::test
