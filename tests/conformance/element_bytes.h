// Conversion of numbers to the bytes of any dtype and back.
#pragma once

#include "runtime/base/dtype.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace cgc::test {

/// Element `i` of `bytes` as a double. Exact except for i64 beyond 2^53.
inline double decode(DType dtype, const std::byte *bytes, uint64_t i) {
  const auto read = [&]<class T>(T value) {
    std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
    return value;
  };
  switch (dtype) {
  case DType::F32:
    return read(float());
  case DType::F16:
    return __half2float(__ushort_as_half(read(uint16_t())));
  case DType::BF16:
    return __bfloat162float(__ushort_as_bfloat16(read(uint16_t())));
  case DType::F64:
    return read(double());
  case DType::I64:
    return read(int64_t());
  case DType::I32:
    return read(int32_t());
  case DType::I16:
    return read(int16_t());
  case DType::I8:
    return read(int8_t());
  case DType::U8:
  case DType::Bool:
    return read(uint8_t());
  }
  return NAN;
}

inline std::vector<std::byte> encode(DType dtype, const std::vector<double> &values) {
  std::vector<std::byte> bytes(values.size() * dtypeSize(dtype));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto write = [&](auto value) {
      std::memcpy(bytes.data() + i * sizeof(value), &value, sizeof(value));
    };
    switch (dtype) {
    case DType::F32:
      write(float(values[i]));
      break;
    case DType::F16:
      write(__half_as_ushort(__float2half(float(values[i]))));
      break;
    case DType::BF16:
      write(__bfloat16_as_ushort(__float2bfloat16(float(values[i]))));
      break;
    case DType::F64:
      write(values[i]);
      break;
    case DType::I64:
      write(int64_t(values[i]));
      break;
    case DType::I32:
      write(int32_t(values[i]));
      break;
    case DType::I16:
      write(int16_t(values[i]));
      break;
    case DType::I8:
      write(int8_t(values[i]));
      break;
    case DType::U8:
      write(uint8_t(values[i]));
      break;
    case DType::Bool:
      write(uint8_t(values[i] != 0));
      break;
    }
  }
  return bytes;
}

inline std::vector<std::byte> encode(DType dtype, const std::vector<float> &values) {
  return encode(dtype, std::vector<double>(values.begin(), values.end()));
}

inline std::vector<double> decodeAll(DType dtype, const std::vector<std::byte> &bytes) {
  std::vector<double> values(bytes.size() / dtypeSize(dtype));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = decode(dtype, bytes.data(), i);
  return values;
}

} // namespace cgc::test
