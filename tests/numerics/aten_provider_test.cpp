// ATen provider: every row of the lowering table exists in this LibTorch; calls, copies and errors.
#include "backend/lowering.h"
#include "ir/op_def.h"
#include "runtime/plan/op_provider.h"
#include "tests/paths.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <dlfcn.h>
#include <unistd.h>

#include <limits>
#include <tuple>

namespace cgc::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

bool isWritten(const c10::Argument &argument) {
  return argument.alias_info() && argument.alias_info()->isWrite();
}

class TableRow : public testing::TestWithParam<unsigned> {};

TEST_P(TableRow, ExistsInLibTorch) {
  auto op = static_cast<ir::OpKind>(GetParam());
  const backend::Lowering &row = backend::lowering(op);
  auto handle = c10::Dispatcher::singleton().findSchema({row.op, row.overload});
  ASSERT_TRUE(handle) << row.op << "." << row.overload;

  // The plan's arguments must be LibTorch's, by name, unless the definition lists them.
  std::vector<std::string> expected;
  size_t written = 0;
  for (const c10::Argument &argument : handle->schema().arguments()) {
    if (isWritten(argument))
      ++written;
    else
      expected.push_back(argument.name());
  }
  const char *call = ir::opDef(op).aten;
  const bool listed = call && llvm::StringRef(call).contains('(');
  ASSERT_EQ(row.args.size(), expected.size()) << handle->schema();
  for (size_t i = 0; i < expected.size(); ++i)
    if (const unsigned *position = std::get_if<unsigned>(&row.args[i]); position && !listed) {
      EXPECT_EQ(ir::opSchema(op).args[*position].name, expected[i]) << handle->schema();
    }

  if (row.kind == backend::Lowering::Kind::Into) {
    EXPECT_EQ(written, ir::opSchema(op).numResults);
    // A generated `.out` wrapper has no kernel of its own: it would compute elsewhere and copy.
    EXPECT_TRUE(handle->hasKernelForDispatchKey(c10::DispatchKey::CPU)) << handle->schema();
  } else {
    EXPECT_EQ(written, 0u);
  }
}

std::vector<unsigned> tableRows() {
  std::vector<unsigned> rows;
  for (unsigned i = 0; i < ir::kNumOps; ++i) {
    auto kind = backend::lowering(static_cast<ir::OpKind>(i)).kind;
    if (kind == backend::Lowering::Kind::Into || kind == backend::Lowering::Kind::Copied)
      rows.push_back(i);
  }
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Ops, TableRow, testing::ValuesIn(tableRows()), [](const auto &info) {
  std::string name = ir::opName(static_cast<ir::OpKind>(info.param)).split('.').second.str();
  return name;
});

class AtenProvider : public testing::Test {
protected:
  void SetUp() override {
    void *library = dlopen((buildDir() / "lib/libcgc_aten.so").c_str(), RTLD_NOW);
    ASSERT_TRUE(library) << dlerror();
    auto factory = reinterpret_cast<OpProviderFactory>(dlsym(library, kOpProviderSymbol));
    ASSERT_TRUE(factory) << dlerror();
    EXPECT_EQ(factory(kOpProviderAbi + 1), nullptr);
    provider_.reset(factory(kOpProviderAbi));
    ASSERT_TRUE(provider_);
    ASSERT_TRUE(provider_->initialize(DeviceKind::Cpu, 0).isOk());
  }

  /// Adds a tensor to the bucket over the memory of `tensor`, which the caller keeps alive.
  TensorId add(const at::Tensor &tensor, DType dtype) {
    bucket_.tensors.push_back({{}, dtype, tensor.sizes().vec(), tensor.strides().vec()});
    memory_.push_back(tensor.data_ptr());
    return TensorId{static_cast<uint32_t>(memory_.size() - 1)};
  }

  Result<std::unique_ptr<BoundCall>> bind(const AtenCall &call) {
    return provider_->bind(call, bucket_,
                           [this](TensorId id) { return memory_[static_cast<uint32_t>(id)]; });
  }

  Status run(const AtenCall &call) {
    auto bound = bind(call);
    CGC_TRY(bound.status());
    return provider_->onStream(nullptr, [&] { return (*bound)->run(); });
  }

  std::unique_ptr<OpProvider> provider_;
  Bucket bucket_;
  std::vector<void *> memory_;
};

TEST_F(AtenProvider, WritesIntoStridedMemory) {
  at::Tensor x = at::arange(6, at::kFloat).view({2, 3}), y = at::full({3, 2}, -1.0f);
  at::Tensor yt = y.t();
  TensorId in = add(x, DType::F32), out = add(yt, DType::F32);
  Status status = run({"aten::add", "out", {in, 2.0, int64_t{1}}, {out}, true});
  ASSERT_TRUE(status.isOk()) << status.message();
  EXPECT_TRUE(y.t().equal(x.add(2)));
}

/// LibTorch's max_pool2d on a GPU: writes channels-last memory from the address of `out` on,
/// whatever its strides are.
at::Tensor &poolAsOnAGpu(const at::Tensor &self, at::IntArrayRef size, at::IntArrayRef stride,
                         at::IntArrayRef padding, bool ceilMode, bool countIncludePad,
                         std::optional<int64_t> divisor, at::Tensor &out) {
  const at::Tensor pooled =
      at::avg_pool2d(self.contiguous(), size, stride, padding, ceilMode, countIncludePad, divisor);
  if (out.numel() == 0)
    out.resize_(pooled.sizes(), at::MemoryFormat::ChannelsLast);
  const at::Tensor written = at::from_blob(
      out.data_ptr(), pooled.sizes(),
      at::empty(pooled.sizes(), at::kFloat, at::MemoryFormat::ChannelsLast).strides());
  written.copy_(pooled);
  return out;
}

TEST_F(AtenProvider, OpsThatIgnoreTheStridesOfOutWriteTheOutputAndNothingElse) {
  const at::Tensor x = at::arange(64, at::kFloat).view({2, 4, 4, 2}).permute({0, 3, 1, 2});
  const at::Tensor expected = at::avg_pool2d(x.contiguous(), {2, 2});
  at::Tensor whole = at::full({2, 3, 2, 2}, -1.0f);
  const at::Tensor y = whole.slice(1, 0, 2);
  const AtenCall call{"aten::avg_pool2d",
                      "out",
                      {add(x, DType::F32), std::vector<int64_t>{2, 2}, std::vector<int64_t>(),
                       std::vector<int64_t>{0, 0}, false, true, NoneArg()},
                      {add(y, DType::F32)},
                      true};
  auto bound = bind(call);
  ASSERT_TRUE(bound) << bound.status().message();
  torch::Library library(torch::Library::IMPL, "aten", c10::DispatchKey::CPU, __FILE__, __LINE__);
  library.impl("avg_pool2d.out", poolAsOnAGpu);
  for (int i = 0; i < 3; ++i) {
    whole.fill_(-1);
    ASSERT_TRUE((*bound)->run().isOk());
    EXPECT_TRUE(y.equal(expected)) << i;
    EXPECT_TRUE(whole.select(1, 2).eq(-1).all().item<bool>()) << i;
  }
}

TEST_F(AtenProvider, InPlaceOverloadsWriteTheOutput) {
  at::Tensor x = at::arange(4, at::kLong), y = at::full({4}, -1.0f);
  TensorId in = add(x, DType::I64), out = add(y, DType::F32);
  ASSERT_TRUE(run({"aten::copy_", "", {in, false}, {out}, true}).isOk());
  EXPECT_TRUE(y.equal(x.to(at::kFloat)));
  ASSERT_TRUE(run({"aten::fill_", "Scalar", {0.5}, {out}, true}).isOk());
  EXPECT_TRUE(y.equal(at::full({4}, 0.5f)));
}

TEST_F(AtenProvider, ABoundCallRunsOnWhatTheMemoryHoldsThen) {
  at::Tensor x = at::full({2}, 1.0f), y = at::empty({2});
  TensorId in = add(x, DType::F32), out = add(y, DType::F32);
  auto bound = bind({"aten::neg", "out", {in}, {out}, true});
  ASSERT_TRUE(bound);
  for (float value : {3.0f, 4.0f}) {
    x.fill_(value);
    ASSERT_TRUE((*bound)->run().isOk());
    EXPECT_TRUE(y.equal(x.neg()));
  }
}

TEST_F(AtenProvider, NumbersDoNotPromote) {
  at::Tensor x = at::full({2}, 1.0f).to(at::kHalf), y = at::empty({2}, at::kHalf);
  TensorId in = add(x, DType::F16), out = add(y, DType::F16);
  // A functional call refuses results of another dtype, so this reveals the dtype of the sum.
  ASSERT_TRUE(run({"aten::add", "Tensor", {in, 2.5, int64_t{1}}, {out}, false}).isOk());
  EXPECT_TRUE(y.equal(at::full({2}, 3.5f).to(at::kHalf)));
}

TEST_F(AtenProvider, SkipsResultsThatNobodyReads) {
  at::Tensor x = at::arange(5, at::kFloat), indices = at::empty({2}, at::kLong);
  TensorId in = add(x, DType::F32), out = add(indices, DType::I64);
  Status status =
      run({"aten::topk", "", {in, int64_t{2}, int64_t{-1}, true, true}, {kNoTensor, out}, false});
  ASSERT_TRUE(status.isOk()) << status.message();
  EXPECT_TRUE(indices.equal(at::arange(4, 2, -1, at::kLong)));
}

TEST_F(AtenProvider, RefusesWhatLibTorchDoesNotHave) {
  at::Tensor x = at::empty({2});
  TensorId id = add(x, DType::F32);
  auto unknown = bind({"aten::add", "nowhere", {id, id, int64_t{1}}, {id}, false});
  EXPECT_EQ(unknown.status().code(), Code::Unsupported);
  EXPECT_THAT(unknown.status().message(),
              AllOf(HasSubstr("aten::add.nowhere"), HasSubstr("no such op")));
}

/// A crafted plan must not reach LibTorch ops that do more than compute.
TEST_F(AtenProvider, RefusesOpsThatNoPlanMayCall) {
  at::Tensor x = at::empty({2});
  TensorId id = add(x, DType::F32);
  // Reads, and with `shared` creates, the file named by its argument.
  const std::string path = testing::TempDir() + "cgc-from-file-" + std::to_string(getpid());
  AtenCall fromFile{"aten::from_file",
                    "",
                    {path, true, int64_t{2}, DType::F32, NoneArg{}, DeviceArg{}, NoneArg{}},
                    {id},
                    false};
  for (const AtenCall &call : {fromFile, AtenCall{"aten::resize_", "", {}, {id}, true},
                               AtenCall{"aten::no_such_op", "", {}, {id}, false},
                               AtenCall{"prim::Print", "", {}, {id}, false}}) {
    auto bound = bind(call);
    EXPECT_EQ(bound.status().code(), Code::Unsupported);
    EXPECT_THAT(bound.status().message(),
                AllOf(HasSubstr(call.op), HasSubstr("not among the ops that a plan may call")));
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST_F(AtenProvider, RefusesArgumentsThatDoNotFit) {
  at::Tensor x = at::empty({2}), y = at::empty({2});
  TensorId in = add(x, DType::F32), out = add(y, DType::F32);
  auto message = [&](const AtenCall &call) {
    auto bound = bind(call);
    EXPECT_EQ(bound.status().code(), Code::Unsupported);
    return bound.status().message();
  };
  EXPECT_THAT(message({"aten::gelu", "out", {in, int64_t{3}}, {out}, true}),
              AllOf(HasSubstr("aten::gelu.out"), HasSubstr("'approximate'"), HasSubstr("an int")));
  EXPECT_THAT(message({"aten::gelu", "out", {in}, {out}, true}),
              HasSubstr("none for 'approximate'"));
  EXPECT_THAT(message({"aten::neg", "out", {in, in}, {out}, true}),
              HasSubstr("takes 1 arguments, the plan has 2"));
  EXPECT_THAT(message({"aten::neg", "out", {NoneArg{}}, {out}, true}), HasSubstr("'self'"));
  EXPECT_THAT(message({"aten::neg", "out", {in}, {out, out}, true}),
              HasSubstr("writes 1 tensors, the plan has 2"));
  EXPECT_THAT(message({"aten::neg", "out", {in}, {}, true}), HasSubstr("no tensor for 'out'"));
  EXPECT_THAT(message({"aten::fill_", "Scalar", {0.5}, {out}, false}),
              HasSubstr("writes its argument 'self'"));
  EXPECT_THAT(
      message(
          {"aten::cat", "out", {std::vector<TensorId>{in, kNoTensor}, int64_t{0}}, {out}, true}),
      HasSubstr("'tensors'"));
}

TEST_F(AtenProvider, NoticesAResultOfAnotherSize) {
  at::Tensor x = at::arange(6, at::kFloat), small = at::empty({5}), large = at::empty({7});
  TensorId in = add(x, DType::F32);
  for (const at::Tensor &y : {small, large}) {
    Status status = run({"aten::neg", "out", {in}, {add(y, DType::F32)}, true});
    EXPECT_EQ(status.code(), Code::Failed);
    EXPECT_THAT(status.message(), HasSubstr("aten::neg.out"));
  }
  Status functional = run({"aten::neg", "", {in}, {add(small, DType::F32)}, false});
  EXPECT_THAT(functional.message(), AllOf(HasSubstr("Float[6]"), HasSubstr("Float[5]")));
}

TEST_F(AtenProvider, NoticesAResultOfAnotherDtypeOrNumber) {
  at::Tensor x = at::arange(6, at::kFloat), y = at::empty({6}, at::kDouble);
  TensorId in = add(x, DType::F32), out = add(y, DType::F64);
  EXPECT_THAT(run({"aten::neg", "", {in}, {out}, false}).message(),
              AllOf(HasSubstr("Float[6]"), HasSubstr("Double[6]")));
  EXPECT_THAT(run({"aten::neg", "", {in}, {out, out}, false}).message(),
              HasSubstr("yields 1 tensors"));
}

TEST_F(AtenProvider, LibTorchsExceptionsBecomeStatus) {
  at::Tensor x = at::empty({2, 3}), y = at::empty({4, 5}), z = at::empty({2, 5});
  Status status = run(
      {"aten::mm", "out", {add(x, DType::F32), add(y, DType::F32)}, {add(z, DType::F32)}, true});
  EXPECT_EQ(status.code(), Code::Failed);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("aten::mm.out"), HasSubstr("cannot be multiplied")));
  Status thrown =
      provider_->onStream(nullptr, []() -> Status { throw std::runtime_error("boom"); });
  EXPECT_EQ(thrown.message(), "boom");
}

/// No check of the plan sees the indices: LibTorch has to refuse those outside of the tensor.
TEST_F(AtenProvider, RefusesIndicesOutsideOfTheTensor) {
  at::Tensor x = at::full({5, 3}, 0.0f), y = at::empty({5, 3}), values = at::full({2, 3}, 1.0f),
             few = at::full({14}, 1.0f), mask = at::full({5, 3}, true, at::kBool);
  const TensorId in = add(x, DType::F32), out = add(y, DType::F32), src = add(values, DType::F32),
                 source = add(few, DType::F32), all = add(mask, DType::Bool);
  for (const int64_t wrong : {5, -6}) {
    at::Tensor list = at::full({2}, wrong, at::kLong), places = at::full({2, 3}, wrong, at::kLong);
    const TensorId indices = add(list, DType::I64), index = add(places, DType::I64);
    for (const bool accumulate : {false, true})
      EXPECT_THAT(
          run({"aten::index_put", "", {in, std::vector{indices}, src, accumulate}, {out}, false})
              .message(),
          HasSubstr("out of bounds"));
    for (const char *reduce : {"sum", "amax"})
      EXPECT_THAT(run({"aten::scatter_reduce",
                       "two_out",
                       {in, int64_t{0}, index, src, std::string(reduce), true},
                       {out},
                       true})
                      .message(),
                  HasSubstr("out of bounds"));
    EXPECT_THAT(
        run({"aten::scatter_add", "out", {in, int64_t{0}, index, src}, {out}, true}).message(),
        HasSubstr("out of bounds"));
  }
  EXPECT_THAT(run({"aten::masked_scatter", "", {in, all, source}, {out}, false}).message(),
              HasSubstr("elements of source"));
}

/// checkAtenValues reads arguments by position: the positions must be those of LibTorch's schemas.
TEST(AtenSchemas, HaveTheirArgumentsWhereValidateReadsThem) {
  const std::vector<std::tuple<const char *, std::vector<const char *>, size_t, const char *>>
      arguments = {
          {"_native_multi_head_attention", {"", "out"}, 4, "num_head"},
          {"_native_multi_head_attention", {"", "out"}, 8, "proj_bias"},
          {"adaptive_avg_pool2d", {"", "out"}, 1, "output_size"},
          {"arange", {"", "out"}, 0, "end"},
          {"arange", {"start", "start_out", "start_step"}, 1, "end"},
          {"arange", {"start_out", "start_step"}, 2, "step"},
          {"batch_norm", {""}, 5, "training"},
          {"constant_pad_nd", {"", "out"}, 1, "pad"},
          {"conv2d", {""}, 3, "stride"},
          {"conv2d", {""}, 4, "padding"},
          {"conv2d", {""}, 5, "dilation"},
          {"conv2d", {""}, 6, "groups"},
          {"conv1d", {""}, 6, "groups"},
          {"conv_transpose2d", {"input"}, 5, "output_padding"},
          {"conv_transpose2d", {"input"}, 6, "groups"},
          {"conv_transpose2d", {"input"}, 7, "dilation"},
          {"upsample_bicubic2d", {"", "out"}, 3, "scales_h"},
          {"upsample_bilinear2d", {"", "out"}, 3, "scales_h"},
          {"upsample_nearest2d", {"", "out"}, 2, "scales_h"},
          {"index_select", {"", "out"}, 1, "dim"},
          {"index_select", {"", "out"}, 2, "index"},
          {"_upsample_bicubic2d_aa", {"", "out"}, 3, "scales_h"},
          {"_upsample_bilinear2d_aa", {"", "out"}, 4, "scales_w"},
          {"_scaled_dot_product_attention_math", {""}, 2, "value"},
          {"_scaled_dot_product_attention_math", {""}, 6, "dropout_mask"},
          {"_scaled_dot_product_attention_math", {""}, 8, "enable_gqa"},
          {"adaptive_avg_pool3d", {""}, 1, "output_size"},
          {"avg_pool3d", {"", "out"}, 3, "padding"},
          {"avg_pool3d", {"", "out"}, 4, "ceil_mode"},
          {"cdist", {""}, 1, "x2"},
          {"col2im", {""}, 1, "output_size"},
          {"col2im", {""}, 5, "stride"},
          {"conv3d", {""}, 6, "groups"},
          {"conv_transpose3d", {"input"}, 7, "dilation"},
          {"grid_sampler_2d", {""}, 2, "interpolation_mode"},
          {"grid_sampler_2d", {""}, 3, "padding_mode"},
          {"im2col", {""}, 1, "kernel_size"},
          {"im2col", {""}, 4, "stride"},
          {"index_put", {""}, 1, "indices"},
          {"masked_scatter", {""}, 1, "mask"},
          {"max_pool3d_with_indices", {"", "out"}, 4, "dilation"},
          {"max_pool3d_with_indices", {"", "out"}, 5, "ceil_mode"},
          {"scaled_dot_product_attention", {""}, 2, "value"},
          {"scaled_dot_product_attention", {""}, 7, "enable_gqa"},
      };
  for (const auto &[op, overloads, position, name] : arguments)
    for (const char *overload : overloads) {
      const auto handle =
          c10::Dispatcher::singleton().findSchema({std::string("aten::") + op, overload});
      ASSERT_TRUE(handle) << op << "." << overload;
      EXPECT_EQ(handle->schema().arguments().at(position).name(), name) << handle->schema();
    }
}

/// A functional call allocates its result, so a result missing from the plan is refused before the
/// call.
TEST_F(AtenProvider, RefusesAtBindAResultThatThePlanDoesNotHave) {
  const int64_t many = int64_t(1) << 20;
  at::Tensor x = at::full({1}, 1.0f), y = at::empty({4});
  TensorId out = add(y, DType::F32);
  memory_.push_back(x.data_ptr());
  bucket_.tensors.push_back({{}, DType::F32, {many, 1}, {0, 1}});
  memory_.push_back(x.data_ptr());
  bucket_.tensors.push_back({{}, DType::F32, {1, many}, {1, 0}});
  const TensorId column{1}, row{2};
  const std::vector<TensorId> copies(1000, column);
  for (const AtenCall &call :
       {AtenCall{"aten::add", "Tensor", {column, row, int64_t{1}}, {out}, false},
        AtenCall{"aten::add", "out", {column, row, int64_t{1}}, {out}, true},
        AtenCall{"aten::matmul", "", {column, row}, {out}, false},
        AtenCall{"aten::cat", "", {copies, int64_t{0}}, {out}, false}}) {
    const auto bound = bind(call);
    EXPECT_EQ(bound.status().code(), Code::Failed) << call.op;
    EXPECT_THAT(bound.status().message(), HasSubstr(call.op));
  }
}

TEST_F(AtenProvider, RefusesTheIntegerQuotientThatTraps) {
  for (const auto &[scalar, dtype, least] :
       {std::tuple(at::kLong, DType::I64, std::numeric_limits<int64_t>::min()),
        std::tuple(at::kInt, DType::I32, int64_t{std::numeric_limits<int32_t>::min()})}) {
    at::Tensor x = at::full({5}, least, scalar), minus = at::full({5}, -1, scalar),
               two = at::full({5}, 2, scalar), y = at::empty({5}, scalar);
    TensorId in = add(x, dtype), one = add(minus, dtype), other = add(two, dtype),
             out = add(y, dtype);
    const auto divide = [&](AtenArg divisor, const std::string &mode) {
      return run({"aten::div", "out_mode", {in, std::move(divisor), mode}, {out}, true});
    };
    EXPECT_THAT(divide(one, "trunc").message(), HasSubstr("by -1"));
    EXPECT_THAT(divide(int64_t{-1}, "trunc").message(), HasSubstr("by -1"));
    EXPECT_THAT(run({"aten::fmod", "Tensor_out", {in, one}, {out}, true}).message(),
                HasSubstr("by -1"));
    ASSERT_TRUE(divide(other, "trunc").isOk());
    EXPECT_TRUE(y.equal(at::full({5}, least / 2, scalar)));
    for (const bool writesOut : {false, true}) {
      const AtenCall call{"aten::div",
                          writesOut ? "Scalar_mode_out" : "Scalar_mode",
                          {in, int64_t{-1}, std::string("trunc")},
                          {out},
                          writesOut};
      EXPECT_THAT(run(call).message(), HasSubstr("by -1")) << call.overload;
    }
    // These do not trap, so LibTorch's own result is kept.
    EXPECT_TRUE(divide(one, "floor").isOk());
    EXPECT_TRUE(run({"aten::floor_divide", "", {in, one}, {out}, false}).isOk());
    EXPECT_TRUE(run({"aten::remainder", "Tensor", {in, one}, {out}, false}).isOk());
    EXPECT_TRUE(run({"aten::remainder", "Scalar", {in, int64_t{-1}}, {out}, false}).isOk());
  }
}

} // namespace
} // namespace cgc::test
