// Lookups in constants: copies the bytes of rows.
#include "driver/constant_lookup.h"

#include "ir/op_views.h"

#include <cstring>

namespace cgc::driver {
namespace {

/// The element `i` of a dense tensor of i64 or i32.
int64_t integerAt(const ir::TensorData &data, size_t i) {
  const std::byte *bytes = data.bytes().data();
  if (data.type().dtype == DType::I64) {
    int64_t value;
    std::memcpy(&value, bytes + i * sizeof value, sizeof value);
    return value;
  }
  int32_t value;
  std::memcpy(&value, bytes + i * sizeof value, sizeof value);
  return value;
}

} // namespace

std::shared_ptr<const ir::TensorData>
lookUpRows(const ir::Node &node, llvm::ArrayRef<std::shared_ptr<const ir::TensorData>> inputs) {
  const auto index = ir::IndexOp::of(node);
  if (!index || inputs.size() != 2)
    return nullptr;
  const ir::TensorData &table = *inputs[0], &numbers = *inputs[1];
  const DType dtype = numbers.type().dtype;
  if (!index->indices().list()[0].isValue() || (dtype != DType::I64 && dtype != DType::I32))
    return nullptr;
  const int64_t rows = table.type().sizes[0];
  const size_t rowBytes = rows == 0 ? 0 : table.type().numBytes() / static_cast<size_t>(rows);
  const auto count = static_cast<size_t>(numbers.type().numElements());
  std::vector<std::byte> bytes(count * rowBytes);
  for (size_t i = 0; i < count; ++i) {
    const int64_t number = integerAt(numbers, i), row = number < 0 ? number + rows : number;
    if (row < 0 || row >= rows)
      return nullptr;
    std::memcpy(bytes.data() + i * rowBytes,
                table.bytes().data() + static_cast<size_t>(row) * rowBytes, rowBytes);
  }
  const ir::TensorType &type = node.result()->tensor();
  return ir::TensorData::copyOf(ir::TensorType::dense(type.dtype, type.sizes), bytes);
}

} // namespace cgc::driver
