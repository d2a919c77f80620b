// Checks of layer_norm_statistics, layer_norm_backward and layer_norm_parameters refuse launches
// that would access memory outside their tensors. Needs no GPU.
#include "runtime/kernels/device/device_kernels.h"
#include "runtime/kernels/rowwise/layer_norm_train.h"
#include "tests/unit/runtime/kernels/check_launch.h"

namespace cgc::test {
namespace {

constexpr int64_t kTrainRows = 10;

constexpr std::pair<const char *, DType> kTrainDTypes[] = {
    {"f32", DType::F32}, {"f16", DType::F16}, {"bf16", DType::BF16}};

/// A launch of layer_norm_statistics or layer_norm_backward with all operands, of kTrainRows rows.
Launch normStatistics(const std::string &name, DType dtype, int64_t columns) {
  const Tensor rows = {kAddress, {kTrainRows, columns}, {}, DType::F32},
               narrow = {kAddress, {kTrainRows, columns}, {}, dtype},
               row = {kAddress, {columns}, {}, DType::F32},
               statistics = {kAddress, {kTrainRows, 1}, {}, DType::F32};
  return {.kernel = "layer_norm_statistics_" + name + (columns > 1024 ? "_2048" : "_1024"),
          .grid = {uint32_t(normStatisticsBlocks(kTrainRows)), 1, 1},
          .block = {kNormStatisticsThreads, 1, 1},
          .sharedBytes = 0,
          .reads = {rows, row, row, narrow},
          .writes = {narrow, statistics, statistics, rows},
          .ints = {kTrainRows, columns},
          .floats = {1e-5}};
}
Launch normBackward(const std::string &name, DType dtype, int64_t columns) {
  const Tensor rows = {kAddress, {kTrainRows, columns}, {}, DType::F32},
               narrow = {kAddress, {kTrainRows, columns}, {}, dtype},
               row = {kAddress, {columns}, {}, DType::F32},
               statistics = {kAddress, {kTrainRows, 1}, {}, DType::F32};
  const uint64_t blocks = normBackwardMostBlocks(kTrainRows, columns);
  return {.kernel = "layer_norm_backward_" + name + (columns > 1024 ? "_2048" : "_1024"),
          .grid = {uint32_t(blocks), 1, 1},
          .block = {normBackwardThreads(columns), 1, 1},
          .sharedBytes = normBackwardSharedBytes(columns),
          .reads = {narrow, rows, statistics, statistics, row, rows},
          .writes = {rows,
                     dtype == DType::F32 ? Tensor() : narrow,
                     {kAddress, {int64_t(blocks), 2, columns}, {}, DType::F32}},
          .ints = {kTrainRows, columns}};
}

/// Appends refusals of rows and columns that the kernel for `columns` does not take.
void refuseOtherRows(std::vector<Refusal> &refusals, int64_t columns) {
  const std::string why = "rows have to be positive, columns a multiple of 4 that the kernel is";
  for (const int64_t bad : {int64_t(0), int64_t(-10), int64_t(1) << 31, INT64_MAX})
    refusals.push_back({[bad](Launch &l) { l.ints[0] = bad; }, why});
  for (const int64_t bad : {int64_t(0), int64_t(-4), int64_t(18),
                            int64_t(columns > 1024 ? 1024 : 1028), int64_t(2052), INT64_MAX - 3})
    refusals.push_back({[bad](Launch &l) { l.ints[1] = bad; }, why});
}

TEST(CheckNormStatistics, Refuses) {
  for (const auto &[name, dtype] : kTrainDTypes)
    for (const int64_t columns : {4, 1024, 1028, 2048}) {
      const Launch good = normStatistics(name, dtype, columns);
      const std::string rows = "x and y have to be dense", addend = "the addend has to be dense",
                        parameters = "weight and bias have to be dense",
                        statistics = "mean and rstd have to be dense";
      std::vector<Refusal> refusals = withLaunch({});
      refuseOtherRows(refusals, columns);
      refuseOtherTensors(refusals, readOf(0), rows);
      refuseOtherTensors(refusals, writeOf(0), rows);
      for (const size_t i : {1, 2}) {
        refuseOtherTensors(refusals, readOf(i), parameters, true);
        refuseOtherTensors(refusals, writeOf(i), statistics);
      }
      refuseOtherTensors(refusals, writeOf(3), addend);
      const DType other = dtype == DType::BF16 ? DType::F16 : DType::BF16;
      refusals.insert(refusals.end(), {{[](Launch &l) { l.reads[0].address += 8; }, rows},
                                       {[](Launch &l) { l.writes[0].address += 2; }, rows},
                                       {[](Launch &l) { l.reads[1].address += 8; }, parameters},
                                       {[](Launch &l) { l.reads[3].address += 2; }, addend},
                                       {[](Launch &l) { l.writes[3].address += 8; }, addend},
                                       {[](Launch &l) { l.reads[3].address = 0; }, addend},
                                       {[other](Launch &l) { l.reads[3].dtype = other; }, addend},
                                       {[](Launch &l) { --l.reads[3].sizes[1]; }, addend},
                                       {[](Launch &l) { l.reads[3].sizes[0] = 1; }, addend},
                                       {[](Launch &l) { l.reads[3].strides = {2, 2}; }, addend}});
      expectRefusals(good, refusals);
      for (const auto &change : std::initializer_list<std::function<void(Launch &)>>{
               [](Launch &l) { l.reads[1] = l.reads[2] = {}; },
               [](Launch &l) { l.reads[3].dtype = DType::F32; },
               [](Launch &l) { l.reads[3] = l.writes[3] = {}; }}) {
        Launch less = good;
        change(less);
        expectTaken(less);
      }
    }
}

TEST(CheckNormBackward, Refuses) {
  for (const auto &[name, dtype] : kTrainDTypes)
    for (const int64_t columns : {4, 1024, 1028, 2048}) {
      const Launch good = normBackward(name, dtype, columns);
      const std::string rows = "grad, x and residual have to be dense",
                        statistics = "mean and rstd have to be dense",
                        weight = "weight has to be dense", result = "grad_x has to be dense";
      std::vector<Refusal> refusals = withLaunch({});
      refusals.push_back({[](Launch &l) { l.grid[0] = 0; }, "the grid has to be"});
      refusals.push_back({[](Launch &l) { l.sharedBytes *= 2; }, "the grid has to be"});
      refuseOtherRows(refusals, columns);
      for (const size_t i : {0, 1})
        refuseOtherTensors(refusals, readOf(i), rows);
      for (const size_t i : {2, 3})
        refuseOtherTensors(refusals, readOf(i), statistics);
      refuseOtherTensors(refusals, readOf(4), weight, true);
      refuseOtherTensors(refusals, readOf(5), rows, true);
      refuseOtherTensors(refusals, writeOf(0), result);
      refuseOtherTensors(refusals, writeOf(2), result);
      if (dtype != DType::F32)
        refuseOtherTensors(refusals, writeOf(1), result, true);
      const Tensor copy = {kAddress, {kTrainRows, columns}, {}, DType::F32},
                   other = {kAddress,
                            {kTrainRows, columns},
                            {},
                            dtype == DType::BF16 ? DType::F16 : DType::BF16};
      refusals.insert(refusals.end(), {{[](Launch &l) { l.reads[0].address += 2; }, rows},
                                       {[](Launch &l) { l.reads[1].address += 8; }, rows},
                                       {[](Launch &l) { l.reads[4].address += 8; }, weight},
                                       {[](Launch &l) { l.reads[5].address += 8; }, rows},
                                       {[](Launch &l) { l.writes[0].address += 8; }, result},
                                       {[](Launch &l) { l.writes[2].address += 8; }, result},
                                       {[copy](Launch &l) { l.writes[1] = copy; }, result},
                                       {[other](Launch &l) { l.writes[1] = other; }, result}});
      expectRefusals(good, refusals);
      for (const auto &change : std::initializer_list<std::function<void(Launch &)>>{
               [](Launch &l) { l.reads[4] = {}; }, [](Launch &l) { l.reads[5] = {}; },
               [](Launch &l) { l.writes[1] = {}; },
               [](Launch &l) { l.grid[0] = 1, l.writes[2].sizes[0] = 1; }}) {
        Launch less = good;
        change(less);
        expectTaken(less);
      }
    }
}

/// Expects the kernel's parameters to have the addresses of all tensors of the launch.
void expectAddressesHandedOver(const Launch &launch) {
  std::vector<void *> addresses;
  for (size_t i = 0; i < launch.reads.size() + launch.writes.size(); ++i)
    // NOLINTNEXTLINE(performance-no-int-to-ptr): nothing accesses it.
    addresses.push_back(reinterpret_cast<void *>((i + 1) * kAddress));
  const std::vector<void *> reads(addresses.begin(), addresses.begin() + launch.reads.size()),
      writes(addresses.begin() + launch.reads.size(), addresses.end());
  Result<KernelParameters> parameters = launch.withView([&](const LaunchView &view) {
    return deviceKernel(*findKernel(launch.kernel)).bind(view, {reads, writes});
  });
  ASSERT_TRUE(parameters.isOk()) << parameters.status().message();
  void *words[16]; // The parameter has at least 128 bytes.
  std::memcpy(static_cast<void *>(words), parameters->data(), sizeof words);
  for (size_t i = 0; i < addresses.size(); ++i)
    EXPECT_THAT(words, testing::Contains(addresses[i])) << launch.kernel << ", tensor " << i;
}

TEST(BindNormTrain, HandsAllTensorsOver) {
  for (const DType addend : {DType::BF16, DType::F32}) {
    Launch launch = normStatistics("bf16", DType::BF16, 64);
    launch.reads[3].dtype = addend;
    expectAddressesHandedOver(launch);
  }
  expectAddressesHandedOver(normStatistics("f32", DType::F32, 64));
  expectAddressesHandedOver(normBackward("bf16", DType::BF16, 64));
}

TEST(CheckNormParameters, Refuses) {
  const Tensor row = {kAddress, {48}, {}, DType::F32};
  const Launch good = {.kernel = "layer_norm_parameters_f32",
                       .grid = {2, 1, 1},
                       .block = {kNormParameterThreads, 1, 1},
                       .sharedBytes = 0,
                       .reads = {{kAddress, {3, 2, 48}, {}, DType::F32}},
                       .writes = {row, row},
                       .ints = {3, 48}};
  const std::string numbers = "partial sums and columns have to be positive";
  std::vector<Refusal> refusals = withLaunch({});
  for (const int64_t bad : {int64_t(0), int64_t(-3), int64_t(1) << 30, INT64_MAX})
    refusals.push_back({[bad](Launch &l) { l.ints[0] = bad; }, numbers});
  for (const int64_t bad : {int64_t(0), int64_t(-48), int64_t(50), int64_t(2052), INT64_MAX - 3})
    refusals.push_back({[bad](Launch &l) { l.ints[1] = bad; }, numbers});
  refuseOtherTensors(refusals, readOf(0), "the partial sums have to be dense");
  for (const size_t i : {0, 1})
    refuseOtherTensors(refusals, writeOf(i), "grad_weight and grad_bias have to be dense", true);
  expectRefusals(good, refusals);
  Launch less = good;
  less.writes[0] = {};
  expectTaken(less);
  std::swap(less.writes[0], less.writes[1]);
  expectTaken(less);
}

} // namespace
} // namespace cgc::test
