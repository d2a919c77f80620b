// Checks of gather, scatter_add and embedding_backward refuse launches that would access memory
// outside their tensors. Needs no GPU.
#include "runtime/kernels/rowwise/embedding_backward.h"
#include "runtime/kernels/rowwise/gather.h"
#include "tests/unit/runtime/kernels/check_launch.h"

namespace cgc::test {
namespace {

TEST(CheckGather, Refuses) {
  const Launch good = {.kernel = "gather",
                       .grid = {1, 1, 1},
                       .block = {kGatherThreads, 1, 1},
                       .sharedBytes = 0,
                       .reads = {{kAddress, {2, 5, 3}}, {kAddress, {2, 7, 3}, {}, DType::I64}},
                       .writes = {{kAddress, {2, 7, 3}}}};
  const std::string x = "x has to be dense, [outer, n, inner]",
                    indices = "indices have to be dense i64 or i32, [outer, k, inner]",
                    y = "y has to be dense, an element for each index",
                    launch = "the grid has to be {up to 65536, 1, 1}";
  std::vector<Refusal> refusals = {{[](Launch &l) { l.reads[0].address = 0; }, x},
                                   {[](Launch &l) { l.reads[0].sizes = {10, 3}; }, x},
                                   {[](Launch &l) { l.reads[0].sizes[1] = 0; }, x},
                                   {[](Launch &l) { l.reads[0].strides = {30, 6, 2}; }, x},
                                   {[](Launch &l) { l.reads[1].address = 0; }, indices},
                                   {[](Launch &l) { l.reads[1].dtype = DType::F32; }, indices},
                                   {[](Launch &l) { l.reads[1].sizes = {14, 3}; }, indices},
                                   {[](Launch &l) { l.reads[1].sizes[1] = 0; }, indices},
                                   {[](Launch &l) { l.reads[1].sizes[0] = 1; }, indices},
                                   {[](Launch &l) { l.reads[1].sizes[2] = 1; }, indices},
                                   {[](Launch &l) { l.reads[1].strides = {1, 2, 14}; }, indices},
                                   {[](Launch &l) { l.reads[1].sizes[1] = 1 << 30; }, "2^31 - 1"},
                                   {[](Launch &l) { l.grid[0] = 0; }, launch},
                                   {[](Launch &l) { l.grid[0] = (1 << 16) + 1; }, launch},
                                   {[](Launch &l) { l.grid[1] = 2; }, launch},
                                   {[](Launch &l) { l.block[0] = 64; }, launch},
                                   {[](Launch &l) { l.sharedBytes = 16; }, launch}};
  refuseOtherTensors(refusals, writeOf(0), y);
  expectRefusals(good, refusals);
  Launch other = good;
  other.reads[0].dtype = other.writes[0].dtype = DType::Bool;
  other.reads[1].dtype = DType::I32;
  expectTaken(other);
}

TEST(CheckScatterAdd, Refuses) {
  const Launch good = {.kernel = "scatter_add_f16",
                       .grid = {1, 1, 1},
                       .block = {kGatherThreads, 1, 1},
                       .sharedBytes = 0,
                       .reads = {{kAddress, {2, 5, 3}},
                                 {kAddress, {2, 7, 3}, {}, DType::I64},
                                 {kAddress, {2, 7, 3}}},
                       .writes = {{kAddress, {2, 5, 3}}}};
  const std::string y = "x and y have to be dense", source = "the source has to be dense";
  std::vector<Refusal> refusals = {
      {[](Launch &l) { l.reads[0].dtype = DType::F32; }, y},
      {[](Launch &l) { l.reads[0].sizes[1] = 4; }, y},
      {[](Launch &l) { l.reads[1].sizes[2] = 1; }, "indices have to be dense"},
      {[](Launch &l) { l.grid[0] = (1 << 16) + 1; }, "the grid has to be"}};
  refuseOtherTensors(refusals, writeOf(0), y);
  refuseOtherTensors(refusals, readOf(2), source);
  expectRefusals(good, refusals);
}

TEST(CheckEmbeddingBackward, Refuses) {
  // Two slices, the second one not full.
  const Launch good = {.kernel = "embedding_backward_f16",
                       .grid = {10, 2, 1},
                       .block = {kEmbeddingBackwardThreads, 1, 1},
                       .sharedBytes = 0,
                       .reads = {{kAddress, {10, 132}}, {kAddress, {2, 5}, {}, DType::I64}},
                       .writes = {{kAddress, {9, 132}}},
                       .ints = {-1}};
  const std::string y = "y has to be dense, [rows of the table, columns]",
                    ids = "ids have to be dense i64 or i32",
                    x = "x has to be dense, a row for each";
  std::vector<Refusal> refusals =
      withLaunch({{[](Launch &l) { l.writes[0].address = 0; }, y},
                  {[](Launch &l) { l.writes[0].sizes = {1188}; }, y},
                  {[](Launch &l) { l.writes[0].sizes[0] = 0; }, y},
                  {[](Launch &l) { l.writes[0].sizes[1] = 0; }, y},
                  {[](Launch &l) { l.writes[0].strides = {1, 9}; }, y},
                  {[](Launch &l) { l.reads[1].address = 0; }, ids},
                  {[](Launch &l) { l.reads[1].dtype = DType::U8; }, ids},
                  {[](Launch &l) { l.reads[1].strides = {1, 2}; }, ids},
                  {[](Launch &l) { l.reads[1].sizes = {0}; }, ids},
                  {[](Launch &l) { l.reads[1].sizes = {1 << 30}; }, ids},
                  {[](Launch &l) { l.reads[1].sizes = {2, 6}; }, x}});
  refuseOtherTensors(refusals, readOf(0), x);
  expectRefusals(good, refusals);
  Launch other = good;
  other.reads[1].dtype = DType::I32;
  expectTaken(other);
}

/// A grid has at most 65535 CTAs in its second dimension.
TEST(CheckEmbeddingBackward, HasColumnsForTheGrid) {
  const auto launch = [](int64_t slices) {
    const int64_t columns = slices * kEmbeddingBackwardColumns;
    return Launch{.kernel = "embedding_backward_f16",
                  .grid = {1, uint32_t(slices), 1},
                  .block = {kEmbeddingBackwardThreads, 1, 1},
                  .sharedBytes = 0,
                  .reads = {{kAddress, {1, columns}}, {kAddress, {1}, {}, DType::I64}},
                  .writes = {{kAddress, {2, columns}}},
                  .ints = {-1}};
  };
  expectTaken(launch(65535));
  expectRefused(launch(65536), [](Launch &) {}, "the grid has to be");
}

} // namespace
} // namespace cgc::test
