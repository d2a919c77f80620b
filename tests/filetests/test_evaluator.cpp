// FileTestEvaluator: dense f32 in, dense f32 out.
#include "tests/filetests/test_evaluator.h"

#include "ir/op_def.h"

#include <cstring>

namespace cgc {

Result<std::vector<std::shared_ptr<const ir::TensorData>>>
FileTestEvaluator::evaluate(const ir::Node &node,
                            llvm::ArrayRef<std::shared_ptr<const ir::TensorData>> inputs) {
  const ir::TensorType &result = node.result()->tensor();
  auto type = ir::TensorType::dense(result.dtype, result.sizes);
  std::vector<float> values(static_cast<size_t>(type.numElements()));
  if (type.dtype == DType::F32 && node.is(ir::OpKind::Full)) {
    values.assign(values.size(), static_cast<float>(*node.arg("fill_value").asNumber()));
  } else if (type.dtype == DType::F32 && node.is(ir::OpKind::Neg)) {
    std::memcpy(values.data(), inputs[0]->bytes().data(), type.numBytes());
    for (float &value : values)
      value = -value;
  } else {
    return Status(Code::Unsupported, "file tests evaluate aten.full and aten.neg in f32, not " +
                                         ir::opName(node.op()).str());
  }
  std::vector<std::byte> bytes(type.numBytes());
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return std::vector<std::shared_ptr<const ir::TensorData>>{ir::TensorData::copyOf(type, bytes)};
}

} // namespace cgc
