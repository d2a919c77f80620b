// Checks of resize refuse launches that would access memory outside their tensors. Needs no GPU.
#include "runtime/kernels/images/resize.h"
#include "tests/unit/runtime/kernels/check_launch.h"

namespace cgc::test {
namespace {

TEST(CheckResize, Refuses) {
  const Launch good = {.kernel = "resize_f16",
                       .grid = {1, 1, 1},
                       .block = {kResizeThreads, 1, 1},
                       .sharedBytes = 0,
                       .reads = {{kAddress, {2, 60}, {}, DType::U8},
                                 {kAddress, {2, 31}, {}, DType::I32},
                                 {kAddress, {3, 256}}},
                       .writes = {{kAddress, {2, 3, 3, 4}}}};
  const std::string pixels = "pixels have to be dense u8", table = "the table has to be dense i32",
                    integers = "3 + (height + width) (1 + taps) integers",
                    values = "values have to be dense, [3, 256]",
                    y = "y has to be dense, [images, 3, height, width]",
                    launch = "the grid has to be {up to 65536, 1, 1}";
  const std::vector<Refusal> refusals = {
      {[](Launch &l) { l.reads[0].address = 0; }, pixels},
      {[](Launch &l) { l.reads[0].dtype = DType::I8; }, pixels},
      {[](Launch &l) { l.reads[0].sizes = {120}; }, pixels},
      {[](Launch &l) { l.reads[0].sizes[0] = 1; }, pixels},
      {[](Launch &l) { l.reads[0].sizes[1] = 2; }, pixels},
      {[](Launch &l) { l.reads[0].strides = {61, 1}; }, pixels},
      {[](Launch &l) { l.reads[1].address = 0; }, table},
      {[](Launch &l) { l.reads[1].dtype = DType::I64; }, table},
      {[](Launch &l) { l.reads[1].sizes[0] = 1; }, table},
      {[](Launch &l) { l.reads[1].sizes[1] = 30; }, integers},
      {[](Launch &l) { l.reads[1].sizes[1] = 10; }, integers},
      {[](Launch &l) { l.reads[1].sizes[1] = 0; }, integers},
      {[](Launch &l) { l.reads[2].sizes[1] = 255; }, values},
      {[](Launch &l) { l.reads[2].dtype = DType::F32; }, values},
      {[](Launch &l) { l.writes[0].sizes[1] = 4; }, y},
      {[](Launch &l) { l.writes[0].sizes[2] = 0; }, y},
      {[](Launch &l) { l.writes[0].dtype = DType::F32; }, y},
      {[](Launch &l) { l.writes[0].strides = {36, 12, 4, 2}; }, y},
      {[](Launch &l) { l.writes[0].sizes = {2, 3, 1 << 15, 1 << 15}; }, "2^31"},
      {[](Launch &l) { l.grid[0] = 0; }, launch},
      {[](Launch &l) { l.grid[0] = (1 << 16) + 1; }, launch},
      {[](Launch &l) { l.grid[1] = 2; }, launch},
      {[](Launch &l) { l.block[0] = 64; }, launch},
      {[](Launch &l) { l.sharedBytes = 16; }, launch}};
  expectRefusals(good, refusals);
  expectTaken(good);
}

} // namespace
} // namespace cgc::test
