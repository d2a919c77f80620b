// allFinite: looks at the bits of the exponents.
#include "runtime/train/finite.h"

#include <cstdint>
#include <cstring>

namespace cgc {
namespace {

/// Whether no element of type T, a floating-point number as unsigned bits, has all bits of
/// `exponent` set, as NaN and infinity have.
template <class T> bool allFinite(std::span<const std::byte> bytes, T exponent) {
  bool finite = true;
  for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
    T bits;
    std::memcpy(&bits, bytes.data() + i, sizeof(bits));
    finite &= (bits & exponent) != exponent;
  }
  return finite;
}

} // namespace

bool allFinite(std::span<const std::byte> bytes, DType dtype) {
  switch (dtype) {
  case DType::F32:
    return allFinite(bytes, uint32_t(0x7f800000));
  case DType::F64:
    return allFinite(bytes, uint64_t(0x7ff0000000000000));
  case DType::F16:
    return allFinite(bytes, uint16_t(0x7c00));
  case DType::BF16:
    return allFinite(bytes, uint16_t(0x7f80));
  default:
    return true;
  }
}

} // namespace cgc
