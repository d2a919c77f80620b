// Converts numbers to elements with the conversions of the CUDA headers.
#include "runtime/kernels/device/element_bits.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstring>

namespace cgc {

ElementBits elementBits(DType dtype, double number) {
  ElementBits element = 0;
  const auto set = [&](auto value) { std::memcpy(&element, &value, sizeof(value)); };
  switch (dtype) {
  case DType::F32:
    set(static_cast<float>(number));
    break;
  case DType::F16:
    set(__half_raw(__float2half_rn(static_cast<float>(number))));
    break;
  case DType::BF16:
    set(__nv_bfloat16_raw(__float2bfloat16_rn(static_cast<float>(number))));
    break;
  case DType::F64:
    set(number);
    break;
  case DType::I64:
    set(static_cast<int64_t>(number));
    break;
  case DType::I32:
    set(static_cast<int32_t>(number));
    break;
  case DType::I16:
    set(static_cast<int16_t>(number));
    break;
  case DType::I8:
    set(static_cast<int8_t>(number));
    break;
  case DType::U8:
    set(static_cast<uint8_t>(number));
    break;
  case DType::Bool:
    set(static_cast<bool>(number));
    break;
  }
  return element;
}

} // namespace cgc
