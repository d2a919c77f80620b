// Numbers as the bytes of f32, f16 and bf16, and back.
#pragma once

#include "runtime/base/dtype.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstring>
#include <vector>

namespace cgc::test {

inline float decode(DType dtype, const std::byte *p) {
  if (dtype == DType::F32) {
    float v;
    std::memcpy(&v, p, sizeof(v));
    return v;
  }
  uint16_t bits;
  std::memcpy(&bits, p, sizeof(bits));
  return dtype == DType::F16 ? __half2float(__ushort_as_half(bits))
                             : __bfloat162float(__ushort_as_bfloat16(bits));
}

inline std::vector<std::byte> encode(DType dtype, const std::vector<float> &values) {
  std::vector<std::byte> bytes(values.size() * dtypeSize(dtype));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t bits = dtype == DType::F16 ? __half_as_ushort(__float2half(values[i]))
                                              : __bfloat16_as_ushort(__float2bfloat16(values[i]));
    if (dtype == DType::F32)
      std::memcpy(bytes.data() + 4 * i, &values[i], 4);
    else
      std::memcpy(bytes.data() + 2 * i, &bits, 2);
  }
  return bytes;
}

inline std::vector<double> decodeAll(DType dtype, const std::vector<std::byte> &bytes) {
  std::vector<double> values(bytes.size() / dtypeSize(dtype));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = decode(dtype, bytes.data() + i * dtypeSize(dtype));
  return values;
}

} // namespace cgc::test
