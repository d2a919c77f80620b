// cgc.gradient_norm: the norm of the norms of the tensors.
#include "backend/ops/tensor_math.h"

namespace cgc::backend {

Status lowerGradientNorm(const ir::Node &node, BucketBuilder &builder) {
  std::vector<Place> gradients;
  DType dtype = DType::F32;
  for (const ir::Arg &arg : node.arg("gradients").list()) {
    gradients.push_back(builder.place(arg.value()));
    if (gradients.back().dtype == DType::F64)
      dtype = DType::F64;
  }
  const Place result = builder.allocate(*node.result());
  const Place norms = builder.temporary(dtype, {int64_t(gradients.size())});
  const auto norm = [&](const Place &of, const Place &to) {
    builder.callInto("aten::linalg_vector_norm", "out",
                     {builder.tensor(of), int64_t{2}, NoneArg{}, false, dtype}, to);
  };
  Place one = norms;
  one.sizes.clear();
  one.strides.clear();
  for (const Place &gradient : gradients) {
    norm(gradient, one);
    one.offset += dtypeSize(dtype);
  }
  if (dtype == result.dtype) {
    norm(norms, result);
    return Status::ok();
  }
  const Place wide = builder.temporary(dtype, {});
  norm(norms, wide);
  builder.copy(wide, result);
  return Status::ok();
}

} // namespace cgc::backend
