// Helpers of the kernels' references: element types with their conversions, rows, sums, and
// iteration over strided operands.
#pragma once

#include "runtime/kernels/reference.h"

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>
#include <vector>

namespace cgc::reference {

/// The bits of an element of a 16-bit float type.
struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};
/// A byte of a bool tensor. Each but 0 is true: a caller's memory may hold bytes that no `bool`
/// has.
struct Bool {
  Bool() = default;
  Bool(bool value) : byte(value) {}
  operator bool() const { return byte != 0; }
  uint8_t byte;
};

inline float toFloat(float v) {
  return v;
}
inline float toFloat(BF16 v) {
  return std::bit_cast<float>(uint32_t(v.bits) << 16);
}
/// Moves exponent and mantissa to their places in an f32 and corrects the exponent's bias, 127 -
/// 15, by a multiplication, which also normalizes subnormal numbers.
inline float toFloat(F16 v) {
  const uint32_t magnitude = (v.bits & 0x7fffu) << 13;
  uint32_t bits = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  if (magnitude >= 0x7c00u << 13) // Infinity or NaN.
    bits |= 0x7f800000u;
  return std::bit_cast<float>(bits | (v.bits & 0x8000u) << 16);
}

/// Rounds to nearest, ties to even, as the kernels do; NaN becomes CUDA's canonical NaN.
template <class T> T fromFloat(float v);
template <> inline float fromFloat<float>(float v) {
  return v;
}
template <> inline BF16 fromFloat<BF16>(float v) {
  const auto bits = std::bit_cast<uint32_t>(v);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return {0x7fff};
  return {uint16_t((bits + 0x7fffu + (bits >> 16 & 1)) >> 16)};
}
template <> inline F16 fromFloat<F16>(float v) {
  const auto bits = std::bit_cast<uint32_t>(v);
  const uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return {0x7fff};
  if (magnitude >= std::bit_cast<uint32_t>(65520.0f)) // Rounds to infinity.
    return {uint16_t(sign | 0x7c00u)};
  if (magnitude < std::bit_cast<uint32_t>(0x1p-14f)) {
    // A subnormal f16. 0.5 has the spacing of these, 2^-24, so the sum is rounded to it.
    const auto sum = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f);
    return {uint16_t(sign | (sum - std::bit_cast<uint32_t>(0.5f)))};
  }
  const uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1);
  return {uint16_t(sign | (rounded - ((127u - 15u) << 23)) >> 13)};
}

/// The value to compare: floats as f32, otherwise the element itself.
template <class T> auto comparable(T value) {
  if constexpr (std::is_same_v<T, Bool>)
    return bool(value);
  else if constexpr (std::is_integral_v<T>)
    return value;
  else
    return toFloat(value);
}

/// The value that a T stores for `v`.
template <class T> float rounded(float v) {
  return toFloat(fromFloat<T>(v));
}

template <class T> struct Type {
  using type = T;
};
/// Calls `f(Type<T>)` with the element type of `dtype`.
template <class F> void withType(DType dtype, F f) {
  switch (dtype) {
  case DType::F32:
    return f(Type<float>());
  case DType::F16:
    return f(Type<F16>());
  case DType::BF16:
    return f(Type<BF16>());
  case DType::F64:
    return f(Type<double>());
  case DType::I64:
    return f(Type<int64_t>());
  case DType::I32:
    return f(Type<int32_t>());
  case DType::I16:
    return f(Type<int16_t>());
  case DType::I8:
    return f(Type<int8_t>());
  case DType::U8:
    return f(Type<uint8_t>());
  case DType::Bool:
    return f(Type<Bool>());
  }
}

template <class T> constexpr bool kIsHalf = std::is_same_v<T, F16> || std::is_same_v<T, BF16>;

/// A number as an element. A 16-bit float rounds it to f32 first.
template <class T> T elementOf(double number) {
  if constexpr (kIsHalf<T>)
    return fromFloat<T>(static_cast<float>(number));
  else
    return static_cast<T>(number);
}

template <class T> const T *dataOf(const TensorView &tensor) {
  return static_cast<const T *>(tensor.data);
}
template <class T> T *resultOf(const TensorView &tensor) {
  return static_cast<T *>(tensor.data);
}

/// Decodes `count` elements.
template <class T> void loadRow(const T *from, int64_t count, float *to) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = toFloat(from[i]);
}
template <class T> void storeRow(const float *from, int64_t count, T *to) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = fromFloat<T>(from[i]);
}

/// Stores element `i` of a result of f32 or of T.
template <class T> void storeSum(const TensorView &result, int64_t i, float sum) {
  if (result.dtype == DType::F32)
    resultOf<float>(result)[i] = sum;
  else
    resultOf<T>(result)[i] = fromFloat<T>(sum);
}

/// The sum of value(0) to value(count - 1) in f32: 16 partial sums, which the compiler vectorizes
/// and whose rounding errors are as small as those of a warp.
template <class F> float sumOf(int64_t count, F value) {
  constexpr int64_t kParts = 16;
  float parts[kParts] = {};
  int64_t i = 0;
  for (; i + kParts <= count; i += kParts)
    for (int64_t p = 0; p < kParts; ++p)
      parts[p] += value(i + p);
  for (int64_t p = 0; i < count; ++i, ++p)
    parts[p] += value(i);
  for (int64_t width = kParts / 2; width > 0; width /= 2)
    for (int64_t p = 0; p < width; ++p)
      parts[p] += parts[p + width];
  return parts[0];
}

/// Element `i` of i64 or i32 indices, clamped to [0, bound).
inline int64_t indexAt(const TensorView &indices, int64_t i, int64_t bound) {
  const int64_t index = indices.dtype == DType::I64 ? dataOf<int64_t>(indices)[i]
                                                    : int64_t(dataOf<int32_t>(indices)[i]);
  return std::clamp<int64_t>(index, 0, bound - 1);
}

inline int64_t elementsOf(const TensorView &tensor) {
  int64_t count = 1;
  for (int64_t size : tensor.sizes)
    count *= size;
  return count;
}

/// The stride of a dimension in elements.
inline int64_t strideOf(const TensorView &tensor, size_t dimension) {
  if (!tensor.strides.empty())
    return tensor.strides[dimension];
  int64_t stride = 1;
  for (size_t d = tensor.sizes.size(); --d > dimension;)
    stride *= tensor.sizes[d];
  return stride;
}

/// Calls `f(offsets)` for each element of `operands[0]` in row-major order. `offsets` are those of
/// the element in each operand; operands after the first broadcast, and an absent one has offset 0.
template <size_t N, class F>
void forElements(const std::array<const TensorView *, N> &operands, F f) {
  const std::span<const int64_t> sizes = operands[0]->sizes;
  const size_t rank = sizes.size();
  std::vector<std::array<int64_t, N>> strides(rank);
  for (size_t d = 0; d < rank; ++d)
    for (size_t k = 0; k < N; ++k) {
      const TensorView &tensor = *operands[k];
      const size_t missing = rank - std::min(rank, tensor.sizes.size());
      const bool repeats = !tensor.data || d < missing || tensor.sizes[d - missing] == 1;
      strides[d][k] = repeats ? 0 : strideOf(tensor, d - missing);
    }
  std::vector<int64_t> index(rank);
  std::array<int64_t, N> offsets = {};
  for (int64_t left = elementsOf(*operands[0]); left > 0; --left) {
    f(offsets);
    for (size_t d = rank; d-- > 0;) {
      for (size_t k = 0; k < N; ++k)
        offsets[k] += strides[d][k];
      if (++index[d] < sizes[d])
        break;
      for (size_t k = 0; k < N; ++k)
        offsets[k] -= strides[d][k] * sizes[d];
      index[d] = 0;
    }
  }
}

} // namespace cgc::reference

/// Defines the reference of a row of kernels.def, in namespace cgc::reference.
#define CGC_REFERENCE(NAME, FUNCTION)                                                              \
  void NAME##Reference(const ReferenceArguments &arguments) {                                      \
    FUNCTION(arguments);                                                                           \
  }
/// Defines those of NAME_f32, NAME_f16 and NAME_bf16 from a template on the element type.
#define CGC_FLOAT_REFERENCES(NAME, FUNCTION)                                                       \
  CGC_REFERENCE(NAME##_f32, FUNCTION<float>)                                                       \
  CGC_REFERENCE(NAME##_f16, FUNCTION<F16>)                                                         \
  CGC_REFERENCE(NAME##_bf16, FUNCTION<BF16>)
