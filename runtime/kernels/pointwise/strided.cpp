// Computes StridedLayouts: merges dimensions and finds whether units of 16 bytes are possible.
#include "runtime/kernels/pointwise/strided.h"

#include "runtime/kernels/kernel_checks.h"

#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

namespace cgc {

namespace {

/// A dimension of the result, with the stride of every operand.
struct Dimension {
  int64_t size;
  std::array<int64_t, kStridedOperands> strides;
};

int64_t strideOf(const OperandView &operand, size_t dimension) {
  if (!operand.strides.empty())
    return operand.strides[dimension];
  int64_t stride = 1;
  for (size_t d = operand.sizes.size(); --d > dimension;)
    stride *= operand.sizes[d];
  return stride;
}

/// Whether all units of `width` elements are contiguous and aligned in memory.
bool hasUnits(std::span<const Dimension> dimensions, std::span<const OperandView *const> operands,
              int64_t width) {
  if (dimensions[0].size % width != 0)
    return false;
  for (size_t k = 0; k < operands.size(); ++k) {
    const int64_t step = dimensions[0].strides[k];
    if (step == 0 && k > 0)
      continue; // Broadcast: one element for the whole unit.
    const uint64_t bytes = width * dtypeSize(operands[k]->dtype);
    if (step != 1 || !isAligned(*operands[k], bytes))
      return false;
    for (const Dimension &dimension : dimensions.subspan(1))
      if (dimension.strides[k] % width != 0)
        return false;
  }
  return true;
}

} // namespace

Result<StridedLayout> stridedLayout(std::span<const OperandView *const> operands, int64_t width) {
  const OperandView &out = *operands[0];
  const size_t rank = out.sizes.size();
  uint64_t elements = 1;
  std::vector<Dimension> dimensions; // Innermost first; merged where all operands allow it.
  for (size_t d = rank; d-- > 0;) {
    Dimension dimension{out.sizes[d], {}};
    elements = checkedMul(elements, static_cast<uint64_t>(dimension.size)).value_or(0);
    if (elements == 0 || elements > INT32_MAX)
      return refuseLaunch("the result has to have between 1 and 2^31 - 1 elements");
    for (size_t k = 0; k < operands.size(); ++k) {
      const OperandView &operand = *operands[k];
      if (!operand.isPresent() || d + operand.sizes.size() < rank)
        continue; // Broadcast: the stride is 0.
      const size_t own = d + operand.sizes.size() - rank;
      if (operand.sizes[own] == dimension.size)
        dimension.strides[k] = strideOf(operand, own);
      else if (operand.sizes[own] != 1)
        return refuseLaunch("an operand does not broadcast to the shape of the result");
    }
    if (dimension.size == 1)
      continue;
    bool merges = !dimensions.empty();
    if (merges)
      for (size_t k = 0; k < operands.size(); ++k)
        merges &= dimension.strides[k] == dimensions.back().strides[k] * dimensions.back().size;
    if (merges)
      dimensions.back().size *= dimension.size;
    else
      dimensions.push_back(dimension);
  }
  for (const OperandView *operand : operands)
    if (operand->sizes.size() > rank)
      return refuseLaunch("an operand has more dimensions than the result");
  if (dimensions.empty())
    dimensions.push_back({1, {}});
  if (dimensions.size() > kElementwiseRank)
    return refuseLaunch("the operands cannot be merged to 6 dimensions");

  if (width > 1 && hasUnits(dimensions, operands, width)) {
    dimensions[0].size /= width;
    for (int64_t &stride : dimensions[0].strides)
      stride *= width;
  } else {
    width = 1;
  }
  StridedLayout layout = {};
  layout.units = static_cast<uint32_t>(elements / width);
  layout.rank = static_cast<int>(dimensions.size());
  layout.width = static_cast<int>(width);
  for (size_t d = 0; d < dimensions.size(); ++d) {
    layout.sizes[d] = Divider(static_cast<uint32_t>(dimensions[d].size));
    for (int k = 0; k < kStridedOperands; ++k)
      layout.strides[k][d] = dimensions[d].strides[k];
  }
  return layout;
}

bool represents(DType dtype, double number) {
  const auto fits = [&]<class T>(T) {
    const double end = std::ldexp(1.0, std::numeric_limits<T>::digits);
    return number >= (std::is_signed_v<T> ? -end : 0) && number < end &&
           std::trunc(number) == number;
  };
  switch (dtype) {
  case DType::F32:
  case DType::F16:
  case DType::BF16:
  case DType::F64:
    return true;
  case DType::I64:
    return fits(int64_t());
  case DType::I32:
    return fits(int32_t());
  case DType::I16:
    return fits(int16_t());
  case DType::I8:
    return fits(int8_t());
  case DType::U8:
    return fits(uint8_t());
  case DType::Bool:
    return fits(bool());
  }
  return false;
}

Status checkStridedLaunch(const LaunchView &launch) {
  if (!hasShape(launch, launch.grid[0], kElementwiseThreads) || launch.grid[0] > UINT32_C(1) << 16)
    return refuseLaunch("the grid has to be {up to 65536, 1, 1}, the block {256, 1, 1}, without "
                        "shared memory");
  if (!launch.writes[0].isPresent())
    return refuseLaunch("the result is absent");
  return Status::ok();
}

} // namespace cgc
