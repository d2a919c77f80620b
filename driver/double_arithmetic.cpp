// Arithmetic on constants in f64: broadcasts and computes whole tensors.
#include "driver/double_arithmetic.h"

#include "ir/op_views.h"
#include "runtime/kernels/reference_elements.h"

#include "llvm/ADT/STLExtras.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

namespace cgc::driver {

namespace {

using ir::Dims;
using ir::OpKind;
using reference::BF16;
using reference::F16;
using Doubles = std::vector<double>;

/// Converts each element from `From` to `To`.
template <class To, class From, class Convert>
std::vector<To> converted(llvm::ArrayRef<std::byte> bytes, Convert convert) {
  std::vector<To> result(bytes.size() / sizeof(From));
  for (size_t i = 0; i < result.size(); ++i) {
    From value;
    std::memcpy(&value, bytes.data() + i * sizeof(From), sizeof(From));
    result[i] = convert(value);
  }
  return result;
}

/// The elements of a tensor of floats.
Doubles elementsOf(const ir::TensorData &data) {
  const auto widen = [](auto value) { return static_cast<double>(reference::toFloat(value)); };
  switch (data.type().dtype) {
  case DType::F32:
    return converted<double, float>(data.bytes(), widen);
  case DType::F16:
    return converted<double, F16>(data.bytes(), widen);
  case DType::BF16:
    return converted<double, BF16>(data.bytes(), widen);
  default:
    return converted<double, double>(data.bytes(), [](double value) { return value; });
  }
}

/// `value` rounded to odd: toward zero, with the last bit set unless it is exact. Another rounding
/// of the result, to 16 bits, is then that of `value` itself (Boldo and Melquiond, "Emulation of
/// FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
float roundToOdd(double value) {
  const auto nearest = static_cast<float>(value);
  if (nearest == value || !std::isfinite(value))
    return nearest;
  auto bits = std::bit_cast<uint32_t>(nearest);
  if (std::abs(static_cast<double>(nearest)) > std::abs(value))
    --bits;
  return std::bit_cast<float>(bits | 1);
}

std::shared_ptr<const ir::TensorData> tensorOf(const ir::TensorType &type, const Doubles &values) {
  const auto copy = [&](const auto &elements) {
    return ir::TensorData::copyOf(
        ir::TensorType::dense(type.dtype, type.sizes),
        {reinterpret_cast<const std::byte *>(elements.data()), type.numBytes()});
  };
  const auto narrowed = [&](auto narrow) {
    std::vector<decltype(narrow(0.0))> elements(values.size());
    llvm::transform(values, elements.begin(), narrow);
    return copy(elements);
  };
  switch (type.dtype) {
  case DType::F32:
    return narrowed([](double value) { return static_cast<float>(value); });
  case DType::F16:
    return narrowed([](double value) { return reference::fromFloat<F16>(roundToOdd(value)); });
  case DType::BF16:
    return narrowed([](double value) { return reference::fromFloat<BF16>(roundToOdd(value)); });
  default:
    return copy(values);
  }
}

/// Calls `visit` with an offset for each index of `sizes`, in row-major order.
template <class Visit> void forEachOffset(const Dims &sizes, const Dims &strides, Visit visit) {
  Dims index(sizes.size(), 0);
  int64_t offset = 0;
  const ir::TensorType type = ir::TensorType::dense(DType::F64, sizes);
  for (int64_t count = type.numElements(); count > 0; --count) {
    visit(offset);
    for (size_t dim = sizes.size(); dim-- > 0;) {
      offset += strides[dim];
      if (++index[dim] < sizes[dim])
        break;
      offset -= strides[dim] * sizes[dim];
      index[dim] = 0;
    }
  }
}

/// An operand of a sum or product, a tensor or a number, as a tensor of `sizes`.
std::optional<Doubles> operand(const ir::Arg &arg, const Dims &sizes,
                               llvm::ArrayRef<std::shared_ptr<const ir::TensorData>> &inputs) {
  const size_t count = ir::TensorType::dense(DType::F64, sizes).numElements();
  if (!arg.isValue()) {
    const auto number = arg.asNumber();
    return number ? std::optional(Doubles(count, *number)) : std::nullopt;
  }
  const ir::TensorData &data = *inputs.front();
  inputs = inputs.drop_front();
  const ir::TensorType &type = data.type();
  if (type.dtype != DType::F64)
    return std::nullopt;
  Dims strides(sizes.size(), 0);
  const size_t missing = sizes.size() - type.sizes.size();
  for (size_t dim = 0; dim < type.sizes.size(); ++dim)
    if (type.sizes[dim] != 1)
      strides[missing + dim] = type.strides[dim];
  const Doubles elements = elementsOf(data);
  Doubles result;
  result.reserve(count);
  forEachOffset(sizes, strides, [&](int64_t offset) { result.push_back(elements[offset]); });
  return result;
}

std::optional<Doubles> combined(const ir::Node &node,
                                llvm::ArrayRef<std::shared_ptr<const ir::TensorData>> inputs) {
  const Dims &sizes = node.result()->tensor().sizes;
  auto left = operand(node.arg("self"), sizes, inputs);
  const auto right = left ? operand(node.arg("other"), sizes, inputs) : std::nullopt;
  if (!right)
    return std::nullopt;
  const bool isProduct = node.is(OpKind::Mul);
  const auto alpha = isProduct ? std::optional(1.0) : node.arg("alpha").asNumber();
  if (!alpha)
    return std::nullopt;
  const double factor = node.is(OpKind::Sub) ? -*alpha : *alpha;
  for (size_t i = 0; i < left->size(); ++i)
    (*left)[i] = isProduct ? (*left)[i] * (*right)[i] : (*left)[i] + factor * (*right)[i];
  return left;
}

std::optional<Doubles> padded(const ir::ConstantPadNdOp &pad, const ir::TensorData &input) {
  const ir::TensorType &from = input.type();
  const ir::TensorType to = ir::TensorType::dense(DType::F64, pad.result()->tensor().sizes);
  const Dims counts = pad.pad();
  if (llvm::any_of(counts, [](int64_t count) { return count < 0; }))
    return std::nullopt;
  int64_t begin = 0;
  for (size_t i = 0; i < counts.size(); i += 2)
    begin += counts[i] * to.strides[from.sizes.size() - 1 - i / 2];
  const Doubles elements = elementsOf(input);
  Doubles result(to.numElements(), *pad.node().arg("value").asNumber());
  size_t next = 0;
  forEachOffset(from.sizes, to.strides,
                [&](int64_t offset) { result[begin + offset] = elements[next++]; });
  return result;
}

} // namespace

std::shared_ptr<const ir::TensorData>
computeInDouble(const ir::Node &node,
                llvm::ArrayRef<std::shared_ptr<const ir::TensorData>> inputs) {
  if (inputs.empty() || node.numResults() != 1 || !node.result()->isTensor())
    return nullptr;
  const ir::TensorType &type = node.result()->tensor();
  const DType from = inputs[0]->type().dtype;
  if (!isFloating(type.dtype) || !isFloating(from) ||
      (type.dtype != DType::F64 && from != DType::F64))
    return nullptr;
  if (node.is(OpKind::To))
    return tensorOf(type, elementsOf(*inputs[0]));
  if (from != DType::F64 || type.dtype != DType::F64)
    return nullptr;
  std::optional<Doubles> result;
  if (node.is(OpKind::Add) || node.is(OpKind::Sub) || node.is(OpKind::Mul)) {
    result = combined(node, inputs);
  } else if (const auto pad = ir::ConstantPadNdOp::of(node)) {
    result = padded(*pad, *inputs[0]);
  } else if (node.is(OpKind::Neg) || node.is(OpKind::Rsqrt)) {
    result = elementsOf(*inputs[0]);
    for (double &value : *result)
      value = node.is(OpKind::Neg) ? -value : 1 / std::sqrt(value);
  }
  return result ? tensorOf(type, *result) : nullptr;
}

} // namespace cgc::driver
