// cuBLASLt's GEMMs against double precision: odd shapes, strided rows, bias, residual and relu,
// between guard bands, on both executors; and frozen algorithms.
#include "tests/conformance/cuda_fixture.h"
#include "tests/conformance/element_bytes.h"

#include "runtime/exec/cublaslt.h"

#include <cmath>

namespace cgc::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kGuard = 512, kWorkspace = 32 << 20;
constexpr uint8_t kGuardByte = 0xab;

struct GemmCase {
  DType dtype;
  int64_t m, n, k;
  bool bias = false, residual = false, relu = false;
  int64_t rowStride = 0; ///< The row stride of x; 0: dense.
  bool tf32 = false;
};

std::string describeGemm(const GemmCase &c) {
  return std::string(dtypeName(c.dtype)) + " M=" + std::to_string(c.m) +
         " N=" + std::to_string(c.n) + " K=" + std::to_string(c.k) + (c.bias ? " bias" : "") +
         (c.residual ? " residual" : "") + (c.relu ? " relu" : "") +
         (c.rowStride ? " stride=" + std::to_string(c.rowStride) : "") + (c.tf32 ? " tf32" : "");
}

/// The operands of a case, in the element type.
struct GemmNumbers {
  std::vector<std::byte> x, weight, bias, residual;
};

GemmNumbers numbersOf(const GemmCase &c) {
  const auto make = [&](int64_t count, unsigned seed) {
    return encode(c.dtype, randomFloats(count, seed));
  };
  return {make(c.m * std::max(c.rowStride, c.k), 1), make(c.n * c.k, 2), make(c.n, 3),
          make(c.m * c.n, 4)};
}

/// A plan that fills the first part of the arena with guard bytes, writes d into its middle, and
/// copies that part to the output. The workspace follows it.
SamplePlan guardedPlan(const GemmCase &c, const GemmNumbers &numbers,
                       std::vector<std::byte> algorithm) {
  SamplePlan sample;
  PlanData &plan = sample.plan;
  plan.target = DeviceKind::Cuda;
  plan.weights = {{.name = "weight", .dtype = c.dtype, .sizes = {c.n, c.k}},
                  {.name = "bias", .dtype = c.dtype, .sizes = {c.n}}};
  sample.weights = {numbers.weight, numbers.bias};
  const int64_t stride = std::max(c.rowStride, c.k);
  const uint64_t bytes = c.m * c.n * dtypeSize(c.dtype), total = bytes + 2 * kGuard,
                 workspace = (total + 255) / 256 * 256;
  Bucket bucket;
  bucket.inputs = {{"x", c.dtype, {c.m, stride}}, {"residual", c.dtype, {c.m, c.n}}};
  bucket.outputs = {{"arena", DType::U8, {int64_t(total)}}};
  bucket.arenaBytes = workspace + kWorkspace;
  bucket.tensors = {{{BufferKind::Input, 0, 0}, c.dtype, {c.m, c.k}, {stride, 1}},
                    dense(BufferKind::Weight, 0, 0, c.dtype, {c.n, c.k}),
                    dense(BufferKind::Weight, 1, 0, c.dtype, {c.n}),
                    dense(BufferKind::Input, 1, 0, c.dtype, {c.m, c.n}),
                    dense(BufferKind::Arena, 0, kGuard, c.dtype, {c.m, c.n}),
                    dense(BufferKind::Arena, 0, workspace, DType::U8, {int64_t(kWorkspace)}),
                    dense(BufferKind::Arena, 0, 0, DType::U8, {int64_t(total)}),
                    dense(BufferKind::Output, 0, 0, DType::U8, {int64_t(total)})};
  GemmCall gemm;
  gemm.x = id(0);
  gemm.weight = id(1);
  gemm.bias = c.bias ? id(2) : kNoTensor;
  gemm.residual = c.residual ? id(3) : kNoTensor;
  gemm.d = id(4);
  gemm.workspace = id(5);
  gemm.relu = c.relu;
  gemm.tf32 = c.tf32;
  LibraryCall call = libraryCall(gemm);
  call.algorithm = std::move(algorithm);
  bucket.records = {{Memset{id(6), kGuardByte}}, {call}, {Memcpy{id(6), id(7)}}};
  plan.entries = {{"main", {bucket}}};
  return sample;
}

class Gemm : public ExecutorTest {
protected:
  /// The first part of the arena after a run: d between guard bytes.
  std::vector<std::byte> compute(const GemmCase &c, const GemmNumbers &numbers,
                                 std::vector<std::byte> algorithm = {}) {
    load(guardedPlan(c, numbers, std::move(algorithm)));
    Context context = this->context(GetParam(), /*poison=*/true);
    notes_ = context.notes();
    std::vector<std::byte> x = numbers.x, residual = numbers.residual;
    std::vector<std::byte> arena(residual.size() + 2 * kGuard);
    const std::vector<int64_t> xSizes = {c.m, std::max(c.rowStride, c.k)}, sizes = {c.m, c.n},
                               arenaSizes = {int64_t(arena.size())};
    const TensorView ins[] = {{x.data(), c.dtype, DeviceKind::Cpu, xSizes, {}},
                              {residual.data(), c.dtype, DeviceKind::Cpu, sizes, {}}};
    const TensorView out{arena.data(), DType::U8, DeviceKind::Cpu, arenaSizes, {}};
    const Status status = context.run("main", ins, {&out, 1});
    EXPECT_TRUE(status.isOk()) << status.message();
    return arena;
  }

  void check(const GemmCase &c) {
    SCOPED_TRACE(describeGemm(c));
    const GemmNumbers numbers = numbersOf(c);
    const std::vector<std::byte> arena = compute(c, numbers);
    EXPECT_THAT(notes_, IsEmpty());
    for (uint64_t i = 0; i < kGuard; ++i) {
      ASSERT_EQ(arena[i], std::byte{kGuardByte}) << "before d, byte " << i;
      ASSERT_EQ(arena[arena.size() - 1 - i], std::byte{kGuardByte}) << "after d, byte -" << i;
    }
    const std::vector<double> x = decodeAll(c.dtype, numbers.x),
                              weight = decodeAll(c.dtype, numbers.weight),
                              bias = decodeAll(c.dtype, numbers.bias),
                              residual = decodeAll(c.dtype, numbers.residual);
    const int64_t stride = std::max(c.rowStride, c.k);
    // One rounding to the result's type and accumulation in f32 (with tf32, of operands with 10
    // bits of mantissa). If rows are badly aligned, the library adds the bias in a second step to a
    // rounded sum.
    const double rounding = c.dtype == DType::F32   ? 0x1p-23
                            : c.dtype == DType::F16 ? 0x1p-11
                                                    : 0x1p-8,
                 summing = c.tf32 ? 0x1p-9 : c.k * 0x1p-24 + 0x1p-20;
    for (int64_t r = 0; r < c.m; ++r)
      for (int64_t n = 0; n < c.n; ++n) {
        double sum = 0, magnitude = 0;
        for (int64_t k = 0; k < c.k; ++k) {
          const double term = x[r * stride + k] * weight[n * c.k + k];
          sum += term;
          magnitude += std::abs(term);
        }
        const double more = c.residual ? residual[r * c.n + n] : 0;
        const double rounded = c.bias ? std::abs(sum + more) : 0;
        double expected = sum + more + (c.bias ? bias[n] : 0);
        if (c.relu)
          expected = std::max(expected, 0.0);
        const double got = decode(c.dtype, arena.data() + kGuard, r * c.n + n);
        ASSERT_NEAR(got, expected,
                    rounding * (2 * std::abs(expected) + rounded) +
                        summing * (magnitude + std::abs(more) + std::abs(bias[n])))
            << "row " << r << " column " << n;
      }
  }

  std::vector<std::string> notes_;
};

CGC_ON_ALL_EXECUTORS(Gemm);

constexpr DType kDTypes[] = {DType::F32, DType::F16, DType::BF16};

TEST_P(Gemm, OddShapes) {
  for (const DType dtype : kDTypes)
    for (const int64_t m : {1, 3, 77, 257})
      for (const auto &[n, k] :
           {std::pair<int64_t, int64_t>{1, 1}, {5, 7}, {33, 65}, {77, 257}, {256, 768}, {320, 72}})
        check({dtype, m, n, k, /*bias=*/true});
}

TEST_P(Gemm, WithAndWithoutBiasResidualAndRelu) {
  for (const DType dtype : kDTypes)
    for (const auto &[n, k] : {std::pair<int64_t, int64_t>{45, 51}, {192, 128}, {192, 3072}})
      for (const bool bias : {false, true}) {
        check({dtype, 77, n, k, bias});
        check({dtype, 77, n, k, bias, /*residual=*/true});
        check({dtype, 77, n, k, bias, false, /*relu=*/true});
      }
}

TEST_P(Gemm, RowsMayLieApart) {
  for (const DType dtype : kDTypes) {
    check({dtype, 50, 64, 64, true, false, false, /*rowStride=*/3200});
    check({dtype, 3, 40, 24, true, true, false, /*rowStride=*/25});
  }
}

TEST_P(Gemm, Tf32IsForWhoAsks) {
  check({DType::F32, 77, 128, 256, true, false, false, 0, /*tf32=*/true});
}

/// A test of the library itself, which the reference executor does not open.
class GemmOfCublasLt : public Gemm {};
CGC_ON_GPU_EXECUTORS(GemmOfCublasLt);

/// Candidates come from a library handle of their own, as in the tuner.
TEST_P(GemmOfCublasLt, FrozenAlgorithmsRunAndOthersAreNotedAndReplaced) {
  const GemmCase c{DType::F16, 77, 768, 768, true};
  const GemmNumbers numbers = numbersOf(c);
  const Result<Gpu> gpu = findGpu(0);
  ASSERT_TRUE(gpu.isOk());
  Result<std::unique_ptr<CublasLt>> library = CublasLt::open("");
  ASSERT_TRUE(library.isOk()) << library.status().message();
  ASSERT_TRUE((*library)->initialize(*gpu).isOk());
  const SamplePlan sample = guardedPlan(c, numbers, {});
  const Bucket &bucket = sample.plan.entries[0].buckets[0];
  const Result<GemmCall> call =
      gemmCall(std::get<LibraryCall>(bucket.records[1].op), bucket.tensors);
  // Only the alignment of the addresses matters.
  const auto candidates = (*library)->candidates(
      {*call, bucket.tensors,
       [&](TensorId id) {
         return reinterpret_cast<void *>(bucket.tensors[uint32_t(id)].slot.offset + 4096);
       }},
      8);
  ASSERT_TRUE(candidates.isOk()) << candidates.status().message();
  ASSERT_GE(candidates->size(), 2u);

  const std::vector<std::byte> best = compute(c, numbers);
  EXPECT_EQ(compute(c, numbers, (*candidates)[0]), best);
  EXPECT_THAT(notes_, IsEmpty());
  for (const std::vector<std::byte> &candidate : *candidates) {
    const std::vector<std::byte> result = compute(c, numbers, candidate);
    EXPECT_THAT(notes_, IsEmpty());
    for (int64_t i = 0; i < c.m * c.n; ++i) {
      const double a = decode(c.dtype, best.data() + kGuard, i),
                   b = decode(c.dtype, result.data() + kGuard, i);
      ASSERT_NEAR(a, b, 0x1p-9 * std::abs(a) + 0.1) << "element " << i;
    }
  }

  const auto changed = [&](auto change) {
    FrozenAlgorithm frozen = *decodeAlgorithm((*candidates)[0]);
    change(frozen);
    EXPECT_EQ(compute(c, numbers, encode(frozen)), best);
  };
  changed([](auto &f) { f.gpu = "NVIDIA Some"; });
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("were tuned on NVIDIA Some (")));
  changed([](auto &f) { f.version += 1; });
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("were tuned on")));
  changed([](auto &f) { f.multiprocessors -= 1; });
  EXPECT_THAT(notes_, ElementsAre(HasSubstr(gpu->name)));
  changed([](auto &f) { f.algorithm.fill(std::byte{0xff}); });
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("refuses an algorithm")));
  EXPECT_EQ(compute(c, numbers, {std::byte{1}}), best);
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("another version of cgc")));
}

TEST_P(GemmOfCublasLt, ALibraryThatIsMissingIsNamed) {
  const GemmCase c{DType::F32, 3, 4, 4};
  const SamplePlan sample = guardedPlan(c, numbersOf(c), {});
  const Result<Plan> plan = Plan::fromMemory(sample.plan, sample.weights);
  ASSERT_TRUE(plan.isOk());
  EngineOptions options;
  options.cublasLtPath = "/nowhere/libcublasLt.so.13";
  const Status status = Engine::create(*plan, options).status();
  EXPECT_EQ(status.code(), Code::Device);
  EXPECT_THAT(status.message(), HasSubstr("/nowhere/libcublasLt.so.13"));
}

TEST_P(Gemm, AWorkspaceThatDoesNotFitComesWithTheMemoryBreakdown) {
  const GemmCase c{DType::F32, 3, 4, 4};
  SamplePlan sample = guardedPlan(c, numbersOf(c), {});
  Bucket &bucket = sample.plan.entries[0].buckets[0];
  bucket.tensors[5].sizes = {int64_t(1) << 46};
  bucket.arenaBytes += uint64_t(1) << 46;
  load(sample);
  const Status status = Context::create(*engine_, {.executor = GetParam()}).status();
  EXPECT_EQ(status.code(), Code::OutOfMemory);
  EXPECT_THAT(status.message(), HasSubstr("70.4 TB for the arena"));
}

} // namespace
} // namespace cgc::test
