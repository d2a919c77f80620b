// Programmatic edges change no bit of a result. The plan is a chain of kernels that read and
// overwrite each other's memory, with a cuBLASLt GEMM in the middle; it runs on both executors.
#include "tests/conformance/cuda_fixture.h"

#include "runtime/plan/gemm_call.h"

namespace cgc::test {
namespace {

/// x -> layer_norm 8 times, between two buffers -> GEMM with a weight -> layer_norm 8 times -> y.
SamplePlan kernelChain(int64_t rows) {
  constexpr int kNorms = 8;
  constexpr int64_t kWorkspace = 4 << 20;
  const std::vector<int64_t> sizes = {rows, kColumns};
  const uint64_t bytes = (rows * kColumns * sizeof(float) + 255) / 256 * 256;
  SamplePlan sample;
  PlanData &plan = sample.plan;
  plan.target = DeviceKind::Cuda;
  plan.weights = {{.name = "scale", .dtype = DType::F32, .sizes = {kColumns}},
                  {.name = "bias", .dtype = DType::F32, .sizes = {kColumns}},
                  {.name = "matrix", .dtype = DType::F32, .sizes = {kColumns, kColumns}}};
  sample.weights = {floatBytes(randomFloats(kColumns, 1)), floatBytes(randomFloats(kColumns, 2)),
                    floatBytes(randomFloats(kColumns * kColumns, 3))};
  Bucket bucket;
  bucket.inputs = {{"x", DType::F32, sizes}};
  bucket.outputs = {{"y", DType::F32, sizes}, {"flags", DType::U8, {3}}};
  bucket.arenaBytes = 2 * bytes + kWorkspace;
  bucket.tensors = {dense(BufferKind::Input, 0, 0, DType::F32, sizes),
                    dense(BufferKind::Arena, 0, 0, DType::F32, sizes),
                    dense(BufferKind::Arena, 0, bytes, DType::F32, sizes),
                    dense(BufferKind::Output, 0, 0, DType::F32, sizes),
                    dense(BufferKind::Output, 1, 0, DType::U8, {3}),
                    dense(BufferKind::Weight, 0, 0, DType::F32, {kColumns}),
                    dense(BufferKind::Weight, 1, 0, DType::F32, {kColumns}),
                    dense(BufferKind::Weight, 2, 0, DType::F32, {kColumns, kColumns}),
                    dense(BufferKind::Arena, 0, 2 * bytes, DType::U8, {kWorkspace})};
  TensorId from = id(0);
  const auto norms = [&] {
    for (int i = 0; i < kNorms; ++i) {
      const TensorId to = from == id(1) ? id(2) : id(1);
      bucket.records.push_back({layerNorm(DType::F32, rows, kColumns, from, id(5), id(6), to)});
      from = to;
    }
  };
  norms();
  GemmCall gemm;
  gemm.x = from;
  gemm.weight = id(7);
  gemm.d = from == id(1) ? id(2) : id(1);
  gemm.workspace = id(8);
  bucket.records.push_back({libraryCall(gemm)});
  from = gemm.d;
  norms();
  bucket.records.push_back({Memset{id(4), 5}});
  bucket.records.push_back({layerNorm(DType::F32, rows, kColumns, from, id(5), id(6), id(3))});
  plan.entries = {{"main", {bucket}}};
  return sample;
}

class Edges : public CudaTest, public testing::WithParamInterface<int64_t> {};

INSTANTIATE_TEST_SUITE_P(Rows, Edges, testing::Values(1, 77, 4096),
                         testing::PrintToStringParamName());

TEST_P(Edges, PlainAndProgrammaticAreBitEqualOnBothExecutors) {
  load(kernelChain(GetParam()));
  std::vector<Context> contexts;
  for (const ExecutorKind executor : {ExecutorKind::Stream, ExecutorKind::Graph})
    for (const bool programmatic : {false, true}) {
      Result<Context> context = Context::create(
          *engine_, {.executor = executor, .programmaticEdges = programmatic, .poisonArena = true});
      ASSERT_TRUE(context.isOk()) << context.status().message();
      contexts.push_back(*std::move(context));
    }
  for (unsigned i = 0; i < 50; ++i) {
    const std::vector<float> x = randomFloats(GetParam() * kColumns, i);
    const Result<Outputs> expected = run(contexts[0], x);
    ASSERT_TRUE(expected.isOk()) << expected.status().message();
    ASSERT_NE(expected->y[0], 0);
    for (size_t c = 1; c < contexts.size(); ++c) {
      const Result<Outputs> got = run(contexts[c], x);
      ASSERT_TRUE(got.isOk()) << got.status().message();
      ASSERT_EQ(std::memcmp(got->y.data(), expected->y.data(), x.size() * sizeof(float)), 0)
          << "context " << c << ", run " << i;
    }
  }
}

} // namespace
} // namespace cgc::test
