// Checks of conv, depthwise_conv, stem_conv and pool refuse launches that would access memory
// outside their tensors, or that TMA cannot describe. Needs no GPU.
#include "runtime/kernels/gemm/conv_weight_gradient.h"
#include "runtime/kernels/gemm/gemm.h"
#include "runtime/kernels/images/images.h"
#include "tests/unit/runtime/kernels/check_launch.h"

#include <algorithm>
#include <iterator>

namespace cgc::test {
namespace {

constexpr ConvWindows kWindows{{3, 3}, {2, 1}, {1, 1}, {1, 1}, {4, 8}};

std::vector<int64_t> withWindows(std::vector<int64_t> ints) {
  std::ranges::copy(kWindows.ints(), std::back_inserter(ints));
  return ints;
}

/// Two images of 8 x 8 pixels with 72 channels to 4 x 8 pixels with 136.
Launch conv(const GemmTile &tile) {
  constexpr int64_t kM = 2 * 4 * 8, kN = 136, kK = 9 * 128;
  return {.kernel = "conv_f16_" + std::string(tile.name),
          .grid = tile.grid(kM, kN, 132),
          .block = {tile.threads(), 1, 1},
          .sharedBytes = tile.sharedBytes(2),
          .reads = {{kAddress, {2, 8, 8, 72}},
                    {kAddress, {kN, 3, 3, 72}},
                    {kAddress, {kN}},
                    {kAddress, {kM, kN}}},
          .writes = {{kAddress, {kM, kN}}, {}},
          .ints = withWindows({kM, kN, kK, int64_t(Activation::Relu), 0})};
}

/// A change of number `i` of the windows, which are the last ten.
std::function<void(Launch &)> window(size_t i, int64_t to) {
  return [=](Launch &l) { l.ints[l.ints.size() - ConvWindows::kNumbers + i] = to; };
}

TEST(CheckImages, Conv) {
  for (const GemmTile &tile : convTiles()) {
    const std::string dense = "x has to be dense [images, height, width, channels]",
                      extents = "the windows are too large, too far apart, or empty",
                      count = "M has to be the windows of all images", w = "w has to be dense";
    std::vector<Refusal> refusals = {
        {[](Launch &l) { l.reads[kGemmX] = {}; }, dense},
        {[](Launch &l) { l.reads[kGemmX].sizes = {2, 8, 8 * 72}; }, dense},
        {[](Launch &l) { l.reads[kGemmX].sizes[3] = 68; }, dense},
        {[](Launch &l) { l.reads[kGemmX].sizes[0] = 0; }, dense},
        {[](Launch &l) { l.reads[kGemmX].dtype = DType::BF16; }, dense},
        {[](Launch &l) { l.reads[kGemmX].strides = {4608, 72, 576, 1}; }, dense},
        {[](Launch &l) { l.reads[kGemmX].sizes[1] = 1 << 16; }, "up to 32768 x 32768 pixels"},
        {[](Launch &l) { l.reads[kGemmX].sizes[0] = 3; }, count},
        {[](Launch &l) { l.reads[kGemmX].sizes[3] = 64; }, count},
        {[](Launch &l) { l.ints[2] = 9 * 72; }, count},
        {[](Launch &l) { l.ints[4] = 1; }, "a gate has to be the residual of gemm"},
        {[](Launch &l) { l.reads[kGemmW].sizes[3] = 64; }, w},
        {[](Launch &l) { l.reads[kGemmW].sizes[0] = 128; }, w},
        {[](Launch &l) { l.reads[kGemmX].address += 8; }, "pixels at multiples of 16 bytes"},
        {[](Launch &l) { l.reads[kGemmW].address += 8; }, "rows at multiples of 16 bytes"},
        {[](Launch &l) { l.reads[kGemmResidual].sizes[0] = 63; }, "x [M,K], w [N,K], residual"},
        {[](Launch &l) { l.writes[0].sizes[1] = 128; }, "x [M,K], w [N,K], residual"},
        {window(8, 5), count},
        {window(9, 7), count},
    };
    for (const size_t i : {0, 1, 2, 3, 8, 9})
      for (const int64_t bad : {int64_t(0), int64_t(-1), INT64_MAX})
        refusals.push_back({window(i, bad), extents});
    for (const size_t i : {4, 5})
      for (const int64_t bad : {int64_t(-128), int64_t(128), INT64_MIN, INT64_MAX})
        refusals.push_back({window(i, bad), extents});
    for (const size_t i : {6, 7})
      for (const int64_t bad : {int64_t(0), int64_t(-257), INT64_MIN, INT64_MAX})
        refusals.push_back({window(i, bad), extents});
    refusals.push_back({window(2, 9), extents});
    // Pixels of a window may be 255 apart, and no more.
    refusals.push_back({window(6, 128), "windows of up to 256 pixels"});
    expectRefusals(conv(tile), refusals);
  }
}

Launch depthwise() {
  const auto shape = DepthwiseShape::of(2, kWindows, 72, 144);
  return {.kernel = "depthwise_conv_f16",
          .grid = {uint32_t(shape.grid[0]), uint32_t(shape.grid[1]), 1},
          .block = {shape.threads, 1, 1},
          .sharedBytes = shape.sharedBytes,
          .reads = {{kAddress, {2, 8, 8, 72}},
                    {kAddress, {3, 3, 144}},
                    {kAddress, {144}},
                    {kAddress, {2, 4, 8, 144}}},
          .writes = {{kAddress, {2, 4, 8, 144}}, {kAddress, {64, 3, 2}, {}, DType::F32}},
          .ints = withWindows({int64_t(Activation::Relu)})};
}

/// Images whose lines are dense.
Launch stem() {
  const StemShape shape = StemShape::of(kWindows, 3);
  const auto grid = shape.grid(2, 24);
  return {.kernel = "stem_conv_f16",
          .grid = {uint32_t(grid[0]), uint32_t(grid[1]), 1},
          .block = {kImageThreads, 1, 1},
          .sharedBytes = uint32_t(shape.sharedBytes()),
          .reads = {{kAddress, {2, 8, 8, 3}, {192, 8, 1, 64}},
                    {kAddress, {24, 3, 3, 3}},
                    {kAddress, {24}}},
          .writes = {{kAddress, {2, 4, 8, 24}}},
          .ints = withWindows({int64_t(Activation::Relu)})};
}

Launch pool() {
  return {.kernel = "pool_f32",
          .grid = {poolBlocks(2 * 4 * 8 * 72), 1, 1},
          .block = {kImageThreads, 1, 1},
          .sharedBytes = 0,
          .reads = {{kAddress, {2, 8, 8, 72}, {}, DType::F32}},
          .writes = {{kAddress, {2, 4, 8, 72}, {}, DType::F32}},
          .ints = withWindows({0, 1, 0})};
}

/// What all refuse.
std::vector<Refusal> refusalsOfImages() {
  const std::string images = "the images have to be",
                    extents = "have to be of up to 1024, and there has to be a window",
                    y = "the results have to be dense, [images, windows, channels]";
  std::vector<Refusal> refusals = {
      {[](Launch &l) { l.reads[0] = {}; }, images},
      {[](Launch &l) { l.reads[0].sizes = {2, 8, 8 * 72}; }, images},
      {[](Launch &l) { l.reads[0].sizes[0] = 0; }, images},
      {[](Launch &l) { l.reads[0].sizes = {1, 1 << 15, 1 << 15, 2}; }, images},
      {[](Launch &l) { l.reads[0].dtype = DType::BF16; }, images},
      {[](Launch &l) { l.writes[0].sizes[1] = 3; }, y},
      {[](Launch &l) { l.writes[0].strides = {2304, 72, 288, 1}; }, y},
      {window(8, 5), y},
      {window(9, 1 << 20), y},
      {[](Launch &l) { l.block[0] = 96; }, "grid"},
      {[](Launch &l) { l.grid[2] = 2; }, "grid"},
      {[](Launch &l) { l.sharedBytes += 16; }, "hared"},
  };
  for (const size_t i : {0, 1, 2, 3, 6, 7, 8, 9})
    for (const int64_t bad : {int64_t(0), int64_t(-1), INT64_MAX})
      refusals.push_back({window(i, bad), extents});
  for (const size_t i : {4, 5})
    for (const int64_t bad : {int64_t(-1), INT64_MAX})
      refusals.push_back({window(i, bad), extents});
  return refusals;
}

TEST(CheckImages, DepthwiseConv) {
  std::vector<Refusal> refusals = refusalsOfImages();
  for (const Refusal &more : std::vector<Refusal>{
           {[](Launch &l) { l.reads[0].strides = {4608, 72, 576, 1}; }, "images have to be dense"},
           {[](Launch &l) { l.reads[0].sizes[3] = 144 / 3; }, "one result or an even number"},
           {[](Launch &l) { l.reads[0].sizes[3] = 9; }, "an even number of channels"},
           {[](Launch &l) { l.reads[1].sizes[0] = 2; }, "w has to be dense"},
           {[](Launch &l) { l.reads[1].sizes[2] = 143; }, "an even number of results"},
           {[](Launch &l) { l.reads[1].sizes = {3, 3 * 144}; }, "an even number of results"},
           {[](Launch &l) { l.reads[1].strides = {1, 3, 9}; }, "w has to be dense"},
           {[](Launch &l) { l.reads[2].sizes[0] = 64; }, "bias has to be dense"},
           {[](Launch &l) { l.reads[3].sizes[0] = 1; }, "the residual has to be dense"},
           {[](Launch &l) { l.reads[3].address += 2; }, "multiples of 4 bytes"},
           {[](Launch &l) { l.writes[1].sizes[1] = 2; }, "row statistics have to be dense"},
           {[](Launch &l) { l.ints[0] = kNumActivations; }, "there is no such activation"},
           {[](Launch &l) { l.grid[1] = 1; }, "those of DepthwiseShape"},
           {[](Launch &l) { l.grid[0] += 1; }, "those of DepthwiseShape"},
           {window(0, 50), "a window of up to 11 x 11"},
       })
    refusals.push_back(more);
  expectRefusals(depthwise(), refusals);
}

TEST(CheckImages, StemConv) {
  std::vector<Refusal> refusals = refusalsOfImages();
  for (const Refusal &more : std::vector<Refusal>{
           {[](Launch &l) { l.reads[1].sizes[3] = 4; }, "w has to be dense"},
           {[](Launch &l) { l.reads[1].sizes[0] = 20; }, "a multiple of 8 results"},
           {[](Launch &l) { l.reads[1].sizes = {24, 27}; }, "a multiple of 8 results"},
           {[](Launch &l) { l.reads[1].strides = {1, 24, 72, 216}; }, "w has to be dense"},
           {[](Launch &l) { l.reads[0].sizes[3] = 4; }, "w has to be dense"},
           {[](Launch &l) { l.reads[0].sizes[3] = 64; }, "up to 256 products"},
           {[](Launch &l) { l.reads[2].sizes[0] = 64; }, "bias has to be dense"},
           {[](Launch &l) { l.reads[2].address += 8; }, "multiples of 16 bytes"},
           {[](Launch &l) { l.writes[0].address += 8; }, "multiples of 16 bytes"},
           {[](Launch &l) { l.ints[0] = kNumActivations; }, "there is no such activation"},
           {[](Launch &l) { l.grid[1] = 2; }, "StemShape::grid()"},
           {[](Launch &l) { l.grid[0] += 1; }, "StemShape::grid()"},
           {window(0, 50), "up to 256 products"},
           {window(2, 100), "fit into shared memory"},
       })
    refusals.push_back(more);
  expectRefusals(stem(), refusals);
}

TEST(CheckImages, Pool) {
  std::vector<Refusal> refusals = refusalsOfImages();
  for (const Refusal &more : std::vector<Refusal>{
           {[](Launch &l) { l.reads[0].strides = {4608, 72, 576, 1}; }, "images have to be dense"},
           {[](Launch &l) { l.ints[0] = 2; }, "there is no such pool"},
           {[](Launch &l) { l.ints[1] = -1; }, "there is no such pool"},
           {[](Launch &l) { l.ints[2] = INT64_C(1) << 40; }, "there is no such pool"},
           {[](Launch &l) { l.grid[0] = 0; }, "the grid has to be"},
           {[](Launch &l) { l.grid[0] = (1 << 16) + 1; }, "the grid has to be"},
       })
    refusals.push_back(more);
  expectRefusals(pool(), refusals);
}

TEST(CheckImages, PoolBackward) {
  Launch launch = pool();
  launch.kernel = "pool_backward_f32";
  launch.reads.push_back(launch.writes[0]);
  launch.writes[0] = launch.reads[0];
  expectRefusals(
      launch,
      {{[](Launch &l) { l.reads[0].strides = {4608, 72, 576, 1}; }, "images have to be dense"},
       {[](Launch &l) { l.reads[1] = {}; }, "the results have to be dense"},
       {[](Launch &l) { l.reads[1].sizes[1] = 3; }, "the results have to be dense"},
       {[](Launch &l) { l.reads[1].dtype = DType::F16; }, "the results have to be dense"},
       {[](Launch &l) { l.writes[0].sizes[1] = 7; }, "dx has to be dense"},
       {[](Launch &l) { l.writes[0].strides = {4608, 72, 576, 1}; }, "dx has to be dense"},
       {[](Launch &l) { l.ints[0] = 2; }, "there is no such pool"},
       {[](Launch &l) { l.grid[0] = 0; }, "the grid has to be"},
       {window(6, 0), "have to be of up to 1024"}});
}

TEST(CheckImages, ConvWeightGradient) {
  constexpr int64_t kResults = 136, kChannels = 72, kSplits = 1;
  const auto shape = WeightGradientShape::of(64, kResults, 9, kChannels);
  const Launch launch{.kernel = "conv_weight_gradient_f16_128",
                      .grid = {uint32_t(shape.columnTiles), uint32_t(shape.rowTiles), 1},
                      .block = {shape.threads(), 1, 1},
                      .sharedBytes = shape.sharedBytes(),
                      .reads = {{kAddress, {64, kResults}}, {kAddress, {2, 8, 8, kChannels}}},
                      .writes = {{kAddress, {kSplits, kResults, 3, 3, kChannels}, {}, DType::F32}},
                      .ints = withWindows({kSplits})};
  std::vector<Refusal> refusals = {
      {[](Launch &l) { l.reads[1] = {}; }, "x has to be dense"},
      {[](Launch &l) { l.reads[1].sizes[3] = 68; }, "x has to be dense"},
      {[](Launch &l) { l.reads[1].address += 8; }, "pixels at multiples of 16 bytes"},
      {[](Launch &l) { l.reads[1].sizes[0] = 3; }, "a row for each of up to 2^30 windows"},
      {[](Launch &l) { l.reads[0] = {}; }, "a multiple of 8 results"},
      {[](Launch &l) { l.reads[0].sizes[1] = 132; }, "a multiple of 8 results"},
      {[](Launch &l) { l.reads[0].sizes[1] = 64; }, "up to 64 results are for the kernel of 64"},
      {[](Launch &l) { l.reads[0].strides = {1, 64}; }, "a row for each of up to 2^30 windows"},
      {[](Launch &l) { l.reads[0].dtype = DType::BF16; }, "a row for each of up to 2^30 windows"},
      {[](Launch &l) { l.reads[0].address += 8; }, "rows at multiples of 16 bytes"},
      {[](Launch &l) { l.writes[0].sizes[0] = 2; }, "there have to be dense parts"},
      {[](Launch &l) { l.writes[0].dtype = DType::F16; }, "there have to be dense parts"},
      {[](Launch &l) { l.writes[0].address += 4; }, "there have to be dense parts"},
      {[](Launch &l) { l.grid[0] += 1; }, "those of WeightGradientShape"},
      {[](Launch &l) { l.grid[2] = 2; }, "those of WeightGradientShape"},
      {[](Launch &l) { l.block[0] = 160; }, "those of WeightGradientShape"},
      {[](Launch &l) { l.sharedBytes -= 16; }, "those of WeightGradientShape"},
      {window(2, 9), "the windows are too large"},
  };
  for (const int64_t bad : {int64_t(0), int64_t(2), INT64_MAX})
    refusals.push_back({[=](Launch &l) { l.ints[0] = bad; }, "there have to be dense parts"});
  expectRefusals(launch, refusals);
}

TEST(CheckImages, SumParts) {
  const Launch launch{.kernel = "sum_parts_f32",
                      .grid = {uint32_t(sumPartsBlocks(1200)), 1, 1},
                      .block = {kSumPartsThreads, 1, 1},
                      .sharedBytes = 0,
                      .reads = {{kAddress, {3, 1200}, {}, DType::F32}},
                      .writes = {{kAddress, {1200}, {}, DType::F32}},
                      .ints = {}};
  const std::string parts = "parts have to be dense";
  expectRefusals(launch, {{[](Launch &l) { l.reads[0] = {}; }, parts},
                          {[](Launch &l) {
                             l.reads[0].sizes[0] = 2;
                             l.reads[0].sizes[1] = 1199;
                           },
                           parts},
                          {[](Launch &l) { l.reads[0].dtype = DType::F16; }, parts},
                          {[](Launch &l) { l.writes[0].sizes[0] = 1202; }, parts},
                          {[](Launch &l) { l.writes[0].address += 8; }, parts},
                          {[](Launch &l) { l.grid[0] = 1; }, "sumPartsBlocks()"}});
}

} // namespace
} // namespace cgc::test
