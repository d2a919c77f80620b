// Tensors in host memory: implements random values, conversions and comparison.
#include "tools/cgc/io/tensors.h"

#include "runtime/base/check.h"

#include "llvm/ADT/APFloat.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace cgc::tool {

namespace {

const llvm::fltSemantics &halfSemantics(DType dtype) {
  return dtype == DType::F16 ? llvm::APFloat::IEEEhalf() : llvm::APFloat::BFloat();
}

double loadElement(const std::byte *source, DType dtype) {
  const auto as = [source]<class T>(T value) {
    std::memcpy(&value, source, sizeof value);
    return static_cast<double>(value);
  };
  switch (dtype) {
  case DType::F32:
    return as(float());
  case DType::F64:
    return as(double());
  case DType::F16:
  case DType::BF16: {
    uint16_t bits;
    std::memcpy(&bits, source, sizeof bits);
    return llvm::APFloat(halfSemantics(dtype), llvm::APInt(16, bits)).convertToDouble();
  }
  case DType::I64:
    return as(int64_t());
  case DType::I32:
    return as(int32_t());
  case DType::I16:
    return as(int16_t());
  case DType::I8:
    return as(int8_t());
  case DType::U8:
  case DType::Bool:
    return as(uint8_t());
  }
  return 0;
}

void storeElement(std::byte *target, DType dtype, double value) {
  const auto put = [target](auto converted) { std::memcpy(target, &converted, sizeof converted); };
  switch (dtype) {
  case DType::F32:
    return put(static_cast<float>(value));
  case DType::F64:
    return put(value);
  case DType::F16:
  case DType::BF16: {
    llvm::APFloat rounded(value);
    bool losesInfo;
    rounded.convert(halfSemantics(dtype), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    return put(static_cast<uint16_t>(rounded.bitcastToAPInt().getZExtValue()));
  }
  case DType::I64:
    return put(static_cast<int64_t>(value));
  case DType::I32:
    return put(static_cast<int32_t>(value));
  case DType::I16:
    return put(static_cast<int16_t>(value));
  case DType::I8:
    return put(static_cast<int8_t>(value));
  case DType::U8:
  case DType::Bool:
    return put(static_cast<uint8_t>(value));
  }
}

size_t elements(const HostTensor &tensor) {
  return tensor.bytes.size() / dtypeSize(tensor.dtype);
}

/// The sum of twelve uniform numbers from -1/2 to 1/2, which has mean 0, variance 1 and a
/// distribution close to the normal one. Computed without rounding.
double approximateNormal(std::mt19937_64 &engine) {
  constexpr int64_t kLargest = 0xffffffff;
  int64_t sum = -6 * kLargest;
  for (int i = 0; i < 6; ++i) {
    const uint64_t bits = engine();
    sum += static_cast<int64_t>((bits >> 32) + (bits & kLargest));
  }
  return static_cast<double>(sum) * 0x1p-32;
}

/// The values of a random integer input: those that the plan allows from 0 on, or 0 and 1. At most
/// 2^31.
IndexRange randomRange(const IoTensor &input) {
  const int64_t largest = input.dtype == DType::I8    ? 127
                          : input.dtype == DType::U8  ? 255
                          : input.dtype == DType::I16 ? 32767
                                                      : std::numeric_limits<int32_t>::max();
  const IndexRange range = indexRange(input).value_or(IndexRange{0, 2});
  const int64_t least = std::clamp<int64_t>(range.least, 0, largest);
  return {least, std::clamp(range.end, least + 1, largest + 1)};
}

} // namespace

HostTensor makeTensor(std::string name, DType dtype, std::vector<int64_t> sizes) {
  const auto bytes = tensorBytes(dtype, sizes);
  CGC_CHECK(bytes && "sizes of a valid plan or of a file that was read");
  return {std::move(name), dtype, std::move(sizes), std::vector<std::byte>(*bytes)};
}

TensorView viewOf(HostTensor &tensor) {
  return {tensor.bytes.data(), tensor.dtype, DeviceKind::Cpu, tensor.sizes, {}};
}

std::vector<TensorView> viewsOf(std::vector<HostTensor> &tensors) {
  std::vector<TensorView> views;
  for (HostTensor &tensor : tensors)
    views.push_back(viewOf(tensor));
  return views;
}

HostTensor randomInput(const IoTensor &input, uint64_t seed) {
  HostTensor tensor = makeTensor(input.name, input.dtype, input.sizes);
  // The C++ standard specifies the integers that the engine yields. Its distributions and the
  // functions of libm differ between machines, so they are not used.
  std::mt19937_64 engine(seed);
  const IndexRange range = randomRange(input);
  const auto count = static_cast<uint64_t>(range.end - range.least);
  const size_t size = dtypeSize(input.dtype);
  for (size_t i = 0; i < elements(tensor); ++i) {
    const double value =
        isFloating(input.dtype)
            ? approximateNormal(engine)
            : static_cast<double>(range.least + int64_t((engine() >> 32) * count >> 32));
    storeElement(tensor.bytes.data() + i * size, input.dtype, value);
  }
  return tensor;
}

std::vector<double> toDoubles(const HostTensor &tensor) {
  std::vector<double> values(elements(tensor));
  const size_t size = dtypeSize(tensor.dtype);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = loadElement(tensor.bytes.data() + i * size, tensor.dtype);
  return values;
}

HostTensor convertFloats(const HostTensor &tensor, DType dtype) {
  CGC_CHECK(isFloating(tensor.dtype) && isFloating(dtype));
  HostTensor converted = makeTensor(tensor.name, dtype, tensor.sizes);
  const std::vector<double> values = toDoubles(tensor);
  for (size_t i = 0; i < values.size(); ++i)
    storeElement(converted.bytes.data() + i * dtypeSize(dtype), dtype, values[i]);
  return converted;
}

Closeness compareValues(const std::vector<double> &actual, const std::vector<double> &expected) {
  CGC_CHECK(actual.size() == expected.size());
  double maxAbs = 0, difference2 = 0, actual2 = 0, expected2 = 0, product = 0;
  bool finite = true;
  for (size_t i = 0; i < actual.size(); ++i) {
    finite = finite && std::isfinite(actual[i]) && std::isfinite(expected[i]);
    const double difference = actual[i] - expected[i];
    maxAbs = std::max(maxAbs, std::abs(difference));
    difference2 += difference * difference;
    actual2 += actual[i] * actual[i];
    expected2 += expected[i] * expected[i];
    product += actual[i] * expected[i];
  }
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (!finite)
    return {kNan, kNan, kNan};
  const double norms = std::sqrt(actual2) * std::sqrt(expected2);
  return {maxAbs, expected2 > 0 ? std::sqrt(difference2 / expected2) : std::sqrt(difference2),
          norms > 0 ? product / norms : (actual2 == expected2 ? 1 : 0)};
}

} // namespace cgc::tool
