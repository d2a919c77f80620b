// squared_error against double precision: sizes below and above a vector, a warp and the cluster.
#include "runtime/kernels/rowwise/squared_error.h"
#include "tests/conformance/kernel_fixture.h"

namespace cgc::test {
namespace {

class SquaredError : public KernelTest {};
CGC_ON_ALL_EXECUTORS(SquaredError);

TEST_P(SquaredError, AndItsGradient) {
  skipUnlessGpuRuns(findKernel("squared_error_f32")->traits);
  for (const int64_t elements : {1, 3, 4, 127, 4096, 65536, 65537, 300004})
    for (const uint64_t offset : {0, 1}) {
      SCOPED_TRACE(std::to_string(elements) + " at " + std::to_string(offset));
      const auto tensor = [&](unsigned seed) {
        return withRandom(emptyTensor(DType::F32, {elements}, {}, offset), seed);
      };
      const HostTensor x = tensor(1), target = tensor(2);
      const auto results = launch(
          {.kernel = "squared_error_f32",
           .blocks = kSquaredErrorBlocks,
           .threads = kSquaredErrorThreads,
           .reads = {x, target},
           .writes = {emptyTensor(DType::F32, {}), emptyTensor(DType::F32, {elements}, {}, offset)},
           .ints = {elements},
           .floats = {0.5, -3}});
      double sum = 0;
      for (int64_t i = 0; i < elements; ++i)
        sum += std::pow(x.at(i) - target.at(i), 2);
      expectNear(results[0], [&](uint64_t) { return 0.5 * sum; }, 4e-6);
      expectNear(results[1], [&](uint64_t i) { return -3 * (x.at(i) - target.at(i)); }, 1e-6, 1e-6);
    }
}

/// A difference that is not finite makes the loss so, and its own gradient.
TEST_P(SquaredError, OfNumbersThatAreNotFinite) {
  skipUnlessGpuRuns(findKernel("squared_error_f32")->traits);
  std::vector<double> x(5000, 1), target(5000, 0.5);
  x[4999] = NAN;
  const auto results =
      launch({.kernel = "squared_error_f32",
              .blocks = kSquaredErrorBlocks,
              .threads = kSquaredErrorThreads,
              .reads = {withValues(emptyTensor(DType::F32, {5000}), x),
                        withValues(emptyTensor(DType::F32, {5000}), target)},
              .writes = {emptyTensor(DType::F32, {}), emptyTensor(DType::F32, {5000})},
              .ints = {5000},
              .floats = {1, 2}});
  expectNear(results[0], [&](uint64_t) { return NAN; });
  expectNear(results[1], [&](uint64_t i) { return i == 4999 ? NAN : 1.0; });
}

} // namespace
} // namespace cgc::test
