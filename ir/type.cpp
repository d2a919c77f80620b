// Type and TensorData: sizes, strides and the text form of types.
#include "ir/type.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cstring>
#include <numeric>
#include <vector>

namespace cgc::ir {

Dims contiguousStrides(llvm::ArrayRef<int64_t> sizes) {
  Dims strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

TensorType TensorType::dense(DType dtype, llvm::ArrayRef<int64_t> sizes, DeviceKind device) {
  return {dtype, Dims(sizes), contiguousStrides(sizes), device};
}

int64_t TensorType::numElements() const {
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  return count;
}

bool TensorType::isContiguous() const {
  if (numElements() == 0)
    return true;
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 1)
      continue;
    if (strides[i] != expected)
      return false;
    expected *= sizes[i];
  }
  return true;
}

std::optional<Dims> denseOrder(const TensorType &type) {
  Dims order(type.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  if (type.isContiguous())
    return order;
  // Dimensions of size 1 stay in place; the others are sorted around them.
  Dims real;
  llvm::copy_if(order, std::back_inserter(real), [&](int64_t d) { return type.sizes[d] != 1; });
  llvm::stable_sort(real, [&](int64_t a, int64_t b) { return type.strides[a] > type.strides[b]; });
  auto next = real.begin();
  for (int64_t &dim : order)
    if (type.sizes[dim] != 1)
      dim = *next++;
  TensorType permuted = type;
  for (size_t i = 0; i < order.size(); ++i) {
    permuted.sizes[i] = type.sizes[order[i]];
    permuted.strides[i] = type.strides[order[i]];
  }
  if (!permuted.isContiguous())
    return std::nullopt;
  return order;
}

bool hasDenseRows(const TensorType &type, int64_t inner) {
  auto order = denseOrder(type);
  if (!order)
    return false;
  for (int64_t dim = type.rank() - inner; dim < type.rank(); ++dim)
    if ((*order)[dim] != dim)
      return false;
  return true;
}

std::string toString(const TensorType &type) {
  auto list = [](llvm::ArrayRef<int64_t> values) {
    return "[" +
           llvm::join(llvm::map_range(values, [](int64_t v) { return std::to_string(v); }), ",") +
           "]";
  };
  std::string text = std::string(dtypeName(type.dtype)) + list(type.sizes);
  if (llvm::ArrayRef(type.strides) != llvm::ArrayRef(contiguousStrides(type.sizes)))
    text += list(type.strides);
  if (type.device != DeviceKind::Cpu)
    text += "@" + std::string(deviceName(type.device));
  return text;
}

namespace {
/// Consumes `[1,2,3]` from the front of `text`.
std::optional<Dims> consumeDims(llvm::StringRef &text) {
  if (!text.consume_front("["))
    return std::nullopt;
  Dims dims;
  text = text.ltrim();
  if (text.consume_front("]"))
    return dims;
  while (true) {
    int64_t value;
    text = text.ltrim();
    if (text.consumeInteger(10, value) || value < 0)
      return std::nullopt;
    dims.push_back(value);
    text = text.ltrim();
    if (text.consume_front("]"))
      return dims;
    if (!text.consume_front(","))
      return std::nullopt;
  }
}
} // namespace

std::optional<TensorType> parseTensorType(llvm::StringRef text) {
  size_t bracket = text.find('[');
  if (bracket == llvm::StringRef::npos)
    return std::nullopt;
  auto dtype = parseDType(text.take_front(bracket));
  if (!dtype)
    return std::nullopt;
  text = text.drop_front(bracket);
  auto sizes = consumeDims(text);
  if (!sizes)
    return std::nullopt;
  // The byte count must fit in an int64, since later code multiplies sizes unchecked.
  int64_t count = static_cast<int64_t>(dtypeSize(*dtype));
  for (int64_t size : *sizes)
    if (__builtin_mul_overflow(count, std::max<int64_t>(size, 1), &count))
      return std::nullopt;
  TensorType type = TensorType::dense(*dtype, *sizes);
  if (text.starts_with("[")) {
    auto strides = consumeDims(text);
    if (!strides || strides->size() != sizes->size())
      return std::nullopt;
    // The extent in memory must fit too.
    int64_t extent = 0, step;
    for (size_t i = 0; i < sizes->size(); ++i)
      if (__builtin_mul_overflow((*sizes)[i], (*strides)[i], &step) ||
          __builtin_add_overflow(extent, step, &extent))
        return std::nullopt;
    type.strides = *strides;
  }
  if (text.consume_front("@")) {
    auto device = parseDevice(text);
    if (!device)
      return std::nullopt;
    type.device = *device;
    text = "";
  }
  if (!text.empty())
    return std::nullopt;
  return type;
}

std::string toString(const Type &type) {
  return type.isDynamic() ? "dynamic" : toString(type.tensor());
}

std::shared_ptr<const TensorData> TensorData::copyOf(TensorType type,
                                                     llvm::ArrayRef<std::byte> bytes) {
  auto storage = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  llvm::ArrayRef<std::byte> view(*storage);
  return std::make_shared<const TensorData>(std::move(type), view, std::move(storage));
}

} // namespace cgc::ir
