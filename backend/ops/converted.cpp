// Converted: tensors of calls of LibTorch in another dtype than the op has them.
#include "backend/ops/converted.h"

namespace cgc::backend {

DType normalizationDType(DType dtype, DeviceKind target) {
  return dtypeSize(dtype) == 2 && target == DeviceKind::Cpu ? DType::F32 : dtype;
}

Place converted(const Place &place, DType dtype, BucketBuilder &builder) {
  if (place.dtype == dtype)
    return densePlace(place, builder);
  Place copy = builder.temporary(dtype, place.sizes);
  builder.copy(place, copy);
  return copy;
}

AtenArg convertedArg(const ir::Node &node, llvm::StringRef name, DType dtype,
                     BucketBuilder &builder) {
  const ir::Arg &arg = node.arg(name);
  if (arg.isNone())
    return NoneArg{};
  return builder.tensor(converted(builder.place(arg.value()), dtype, builder));
}

Place ConvertedResults::add(const ir::Value &result, DType dtype) {
  Place place = builder_.allocate(result);
  if (place.dtype == dtype)
    return place;
  Place temporary = builder_.temporary(dtype, place.sizes);
  copies_.emplace_back(temporary, place);
  return temporary;
}

void ConvertedResults::convert() {
  for (const auto &[from, to] : copies_)
    builder_.copy(from, to);
}

} // namespace cgc::backend
