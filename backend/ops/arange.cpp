// arange: a weight with its values for cuda, a call of LibTorch for cpu.
#include "backend/lowering.h"

namespace cgc::backend {
namespace {

/// start, start + step, ..., computed in Number and rounded to Element, which `dtype` names.
template <class Element, class Number>
std::shared_ptr<const ir::TensorData> valuesOf(DType dtype, int64_t count, Number start,
                                               Number step) {
  std::vector<Element> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    values[static_cast<size_t>(i)] = static_cast<Element>(start + static_cast<Number>(i) * step);
  return ir::TensorData::copyOf(ir::TensorType::dense(dtype, {count}),
                                llvm::ArrayRef(reinterpret_cast<const std::byte *>(values.data()),
                                               values.size() * sizeof(Element)));
}

int64_t whole(const ir::Arg &number) {
  const int64_t *integer = number.getIf<int64_t>();
  return integer ? *integer : static_cast<int64_t>(*number.asNumber());
}

/// The values in the dtype of the result or a wider one. As LibTorch does, counts in i64 for
/// integers and in double for floats.
std::shared_ptr<const ir::TensorData> valuesOf(const ir::Node &node) {
  const ir::TensorType &type = node.result()->tensor();
  const int64_t count = type.sizes[0];
  const ir::Arg &start = node.arg("start"), &step = node.arg("step");
  if (!isFloating(type.dtype))
    return valuesOf<int64_t>(DType::I64, count, whole(start), whole(step));
  const double first = *start.asNumber(), by = *step.asNumber();
  return type.dtype == DType::F64 ? valuesOf<double>(DType::F64, count, first, by)
                                  : valuesOf<float>(DType::F32, count, first, by);
}

} // namespace

Status lowerArange(const ir::Node &node, BucketBuilder &builder) {
  const ir::Value &result = *node.result();
  if (builder.target() == DeviceKind::Cpu) {
    // validate() computes the number of values in double, which is another one for fractions in
    // i64.
    const auto number = [&](llvm::StringRef name) -> AtenArg {
      return result.tensor().dtype == DType::I64 ? whole(node.arg(name))
                                                 : builder.arg(node.arg(name));
    };
    builder.callInto("aten::arange", "start_out", {number("start"), number("end"), number("step")},
                     builder.allocate(result));
    return Status::ok();
  }
  const Place values = builder.addConstant("arange", valuesOf(node));
  if (values.dtype == result.tensor().dtype)
    builder.setPlace(&result, values);
  else
    builder.copy(values, builder.allocate(result));
  return Status::ok();
}

} // namespace cgc::backend
