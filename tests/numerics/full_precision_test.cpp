// FullPrecision and withoutTf32: f32 GEMMs without TF32, and the host's settings restored.
#include "runtime/aten/full_precision.h"

#include <ATen/ops/conv2d.h>
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

/// Resets LibTorch to the settings with which a process starts.
class FullPrecisionScope : public testing::Test {
protected:
  void TearDown() override {
    host().setAllowTF32CuBLAS(false);
    set(Float32Backend::CUDA, Float32Op::MATMUL, Float32Precision::NONE);
    set(Float32Backend::CUDA, Float32Op::ALL, Float32Precision::NONE);
    set(Float32Backend::GENERIC, Float32Op::ALL, Float32Precision::NONE);
  }
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

TEST(WithoutTf32, IsTheSameConvolution) {
  const at::Tensor images = at::randn({2, 4, 6, 7}), weight = at::randn({6, 2, 3, 3}),
                   bias = at::randn({6});
  for (const at::Tensor &input : {images, images[0]})
    for (const bool biased : {true, false}) {
      const at::Tensor expected =
          at::conv2d(input, weight, biased ? bias : at::Tensor(), {2, 1}, {1, 0}, {1, 2}, 2);
      std::vector<c10::IValue> args = {input,
                                       weight,
                                       biased ? c10::IValue(bias) : c10::IValue(),
                                       c10::List<int64_t>({2, 1}),
                                       c10::List<int64_t>({1, 0}),
                                       c10::List<int64_t>({1, 2}),
                                       int64_t{2}};
      auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::conv2d", "");
      at::Tensor output = at::empty_like(expected);
      aten::withoutTf32(op, args, output);
      EXPECT_EQ(op.schema().name(), "aten::_convolution");
      // The last argument is LibTorch's allow_tf32.
      EXPECT_EQ(op.schema().arguments().back().name(), "allow_tf32");
      EXPECT_FALSE(args.back().toBool());
      op.callBoxed(args);
      EXPECT_TRUE(args.at(0).toTensor().equal(expected.view(output.sizes())));
      EXPECT_EQ(args.at(0).toTensor().sizes(), output.sizes());
    }
}

TEST(MultipliesMatrices, IsTrueForTheOpsThatDo) {
  for (const char *op : {"aten::_native_multi_head_attention", "aten::addmm", "aten::baddbmm",
                         "aten::bmm", "aten::conv2d", "aten::linear", "aten::matmul", "aten::mm",
                         "aten::scaled_dot_product_attention"})
    EXPECT_TRUE(aten::multipliesMatrices(op)) << op;
  EXPECT_FALSE(aten::multipliesMatrices("aten::mul"));
}

} // namespace
} // namespace cgc::test
