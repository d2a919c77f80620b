// TensorView: a borrowed, strided tensor as it crosses the runtime's API.
#pragma once

#include "runtime/base/dtype.h"

#include <cstdint>
#include <span>

namespace cgc {

/// A view with the content of a DLTensor (data, device, dtype, shape, strides) and cgc's dtype. It
/// owns nothing: `data`, `sizes` and `strides` belong to the caller and must outlive the call that
/// takes the view.
struct TensorView {
  void *data = nullptr;
  DType dtype = DType::F32;
  DeviceKind device = DeviceKind::Cpu;
  std::span<const int64_t> sizes;
  /// Strides in elements. Empty means contiguous and row-major.
  std::span<const int64_t> strides;
};

} // namespace cgc
