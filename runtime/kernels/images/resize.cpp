// Checks launches of resize_*.
#include "runtime/kernels/images/resize.h"

#include "runtime/kernels/kernel_checks.h"

namespace cgc {

Result<ResizeLaunch> checkResize(const LaunchView &launch, DType dtype) {
  const OperandView &pixels = launch.reads[0], &table = launch.reads[1], &values = launch.reads[2],
                    &y = launch.writes[0];
  const uint64_t elements = elementsOf(y);
  if (!isDenseOf(y, dtype, elements) || y.sizes.size() != 4 || y.sizes[1] != 3 || elements == 0 ||
      elements > INT32_MAX)
    return refuseLaunch("y has to be dense, [images, 3, height, width], of up to 2^31 elements");
  const int64_t images = y.sizes[0], rows = y.sizes[2], columns = y.sizes[3];
  if (!isDenseOf(pixels, DType::U8, elementsOf(pixels)) || pixels.sizes.size() != 2 ||
      pixels.sizes[0] != images || pixels.sizes[1] < 3)
    return refuseLaunch("pixels have to be dense u8, [images, bytes], with a pixel of 3 bytes");
  if (!isDenseOf(table, DType::I32, elementsOf(table)) || table.sizes.size() != 2 ||
      table.sizes[0] != images)
    return refuseLaunch("the table has to be dense i32, [images, integers]");
  const int64_t integers = table.sizes[1], taps = (integers - kResizeHeader) / (rows + columns) - 1;
  if (taps < 1 || taps > INT32_MAX || integers != kResizeHeader + (rows + columns) * (1 + taps))
    return refuseLaunch("a table has to have 3 + (height + width) (1 + taps) integers");
  if (!isDenseOf(values, dtype, 3 * 256))
    return refuseLaunch("values have to be dense, [3, 256]");
  if (launch.grid[0] < 1 || launch.grid[0] > 1 << 16 ||
      !hasShape(launch, launch.grid[0], kResizeThreads))
    return refuseLaunch("the grid has to be {up to 65536, 1, 1}, the block {256, 1, 1}, without "
                        "shared memory");
  return ResizeLaunch{static_cast<uint32_t>(elements / 3),
                      pixels.sizes[1],
                      integers,
                      static_cast<int>(taps),
                      static_cast<int>(rows),
                      Divider(static_cast<uint32_t>(rows * columns)),
                      Divider(static_cast<uint32_t>(columns))};
}

CGC_FLOAT_KERNEL_CHECKS(resize, checkResize)

} // namespace cgc
