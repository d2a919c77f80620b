// Convert: conversions between LibTorch's types and cgc's.
#include "frontend/convert.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/jit_type.h>

namespace cgc::frontend {

std::optional<DType> toDType(c10::ScalarType type) {
  switch (type) {
  case c10::ScalarType::Float:
    return DType::F32;
  case c10::ScalarType::Half:
    return DType::F16;
  case c10::ScalarType::BFloat16:
    return DType::BF16;
  case c10::ScalarType::Double:
    return DType::F64;
  case c10::ScalarType::Long:
    return DType::I64;
  case c10::ScalarType::Int:
    return DType::I32;
  case c10::ScalarType::Short:
    return DType::I16;
  case c10::ScalarType::Char:
    return DType::I8;
  case c10::ScalarType::Byte:
    return DType::U8;
  case c10::ScalarType::Bool:
    return DType::Bool;
  default:
    return std::nullopt;
  }
}

c10::ScalarType toScalarType(DType dtype) {
  switch (dtype) {
  case DType::F32:
    return c10::ScalarType::Float;
  case DType::F16:
    return c10::ScalarType::Half;
  case DType::BF16:
    return c10::ScalarType::BFloat16;
  case DType::F64:
    return c10::ScalarType::Double;
  case DType::I64:
    return c10::ScalarType::Long;
  case DType::I32:
    return c10::ScalarType::Int;
  case DType::I16:
    return c10::ScalarType::Short;
  case DType::I8:
    return c10::ScalarType::Char;
  case DType::U8:
    return c10::ScalarType::Byte;
  case DType::Bool:
    return c10::ScalarType::Bool;
  }
  return c10::ScalarType::Undefined;
}

std::string whyUnsupported(const at::Tensor &tensor) {
  if (!tensor.defined())
    return "an undefined tensor";
  if (tensor.layout() != c10::kStrided || tensor.is_quantized())
    return "a sparse or quantized tensor";
  if (tensor.is_neg())
    return "a negated view, whose memory holds the other sign (resolve_neg() makes it a tensor of "
           "its own)";
  if (!toDType(tensor.scalar_type()))
    return std::string("a ") + c10::toString(tensor.scalar_type()) + " tensor";
  if (!tensor.device().is_cpu())
    return "a tensor without data";
  const size_t taken = at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(),
                                                        tensor.itemsize(), tensor.storage_offset());
  if (taken > 0 && (!tensor.storage().data() || tensor.storage().nbytes() == 0))
    return "a tensor without data: it was on the meta device, or its storage was freed";
  if (taken > tensor.storage().nbytes())
    return "a damaged tensor, which reaches past its bytes";
  return "";
}

std::optional<ir::Arg> toConstant(const c10::IValue &value) {
  if (value.isNone())
    return ir::Arg();
  if (value.isBool())
    return ir::Arg(value.toBool());
  if (value.isInt())
    return ir::Arg(static_cast<int64_t>(value.toInt()));
  if (value.isDouble())
    return ir::Arg(value.toDouble());
  if (value.isString())
    return ir::Arg(value.toStringRef());
  if (value.isDevice())
    return ir::Arg(value.toDevice().is_cpu() ? DeviceKind::Cpu : DeviceKind::Cuda);
  if (!value.isList() && !value.isTuple())
    return std::nullopt;
  ir::Arg::List list;
  auto append = [&](const c10::IValue &element) {
    std::optional<ir::Arg> arg = toConstant(element);
    if (arg)
      list.push_back(std::move(*arg));
    return arg.has_value();
  };
  if (value.isTuple()) {
    for (const c10::IValue &element : value.toTupleRef().elements())
      if (!append(element))
        return std::nullopt;
  } else {
    for (const c10::IValue &element : value.toListRef())
      if (!append(element))
        return std::nullopt;
  }
  return ir::Arg(std::move(list));
}

std::shared_ptr<const ir::TensorData> TensorPool::get(const at::Tensor &tensor) {
  Key key(tensor.const_data_ptr(), tensor.scalar_type(), tensor.sizes().vec(),
          tensor.strides().vec());
  std::shared_ptr<const ir::TensorData> &data = pool_[std::move(key)];
  if (data)
    return data;
  auto dense = std::make_shared<at::Tensor>(tensor.detach().contiguous());
  llvm::ArrayRef<int64_t> sizes(dense->sizes().data(), dense->sizes().size());
  llvm::ArrayRef<std::byte> bytes(static_cast<const std::byte *>(dense->const_data_ptr()),
                                  dense->nbytes());
  data = std::make_shared<ir::TensorData>(
      ir::TensorType::dense(*toDType(tensor.scalar_type()), sizes), bytes, dense);
  return data;
}

} // namespace cgc::frontend
