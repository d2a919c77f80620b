// TensorMath: one call of LibTorch for each function.
#include "backend/ops/tensor_math.h"

namespace cgc::backend {

Place TensorMath::call(const char *op, const char *overload, std::vector<AtenArg> args,
                       const Place &like, const std::optional<Place> &result) {
  Place to = result ? *result : builder_.temporary(like.dtype, like.sizes);
  builder_.callInto(op, overload, std::move(args), to);
  return to;
}

Place TensorMath::add(const Place &x, const Place &z, const ir::Arg &factor,
                      std::optional<Place> result) {
  return call("aten::add", "out", {arg(x), arg(z), builder_.arg(factor)}, x, result);
}

Place TensorMath::sub(const Place &x, const Place &z, std::optional<Place> result) {
  return call("aten::sub", "out", {arg(x), arg(z), int64_t{1}}, x, result);
}

Place TensorMath::mul(const Place &x, const Place &z, std::optional<Place> result) {
  return call("aten::mul", "out", {arg(x), arg(z)}, x, result);
}

Place TensorMath::div(const Place &x, const Place &z, std::optional<Place> result) {
  return call("aten::div", "out", {arg(x), arg(z)}, x, result);
}

Place TensorMath::sqrt(const Place &x, std::optional<Place> result) {
  return call("aten::sqrt", "out", {arg(x)}, x, result);
}

Place TensorMath::lerp(const Place &x, const Place &end, double weight,
                       std::optional<Place> result) {
  return call("aten::lerp", "Scalar_out", {arg(x), arg(end), weight}, x, result);
}

Place TensorMath::addcmul(const Place &x, const Place &y, const Place &z, double factor,
                          std::optional<Place> result) {
  return call("aten::addcmul", "out", {arg(x), arg(y), arg(z), factor}, x, result);
}

Place TensorMath::where(const Place &condition, const Place &x, const Place &z,
                        std::optional<Place> result) {
  return call("aten::where", "self_out", {arg(condition), arg(x), arg(z)}, x, result);
}

Place TensorMath::bitwiseAnd(const Place &x, const Place &z, std::optional<Place> result) {
  return call("aten::bitwise_and", "Tensor_out", {arg(x), arg(z)}, x, result);
}

Place TensorMath::bitwiseXor(const Place &x, const Place &z, std::optional<Place> result) {
  return call("aten::bitwise_xor", "Tensor_out", {arg(x), arg(z)}, x, result);
}

Place TensorMath::rightShift(const Place &x, const Place &bits, std::optional<Place> result) {
  return call("aten::bitwise_right_shift", "Tensor_out", {arg(x), arg(bits)}, x, result);
}

Place TensorMath::power(double base, const Place &exponent) {
  return call("aten::pow", "Scalar_out", {base, arg(exponent)}, exponent, {});
}

Place TensorMath::equal(const Place &x, int64_t number) {
  return call("aten::eq", "Scalar_out", {arg(x), number}, x,
              builder_.temporary(DType::Bool, x.sizes));
}

Place TensorMath::converted(const Place &x, DType dtype) {
  if (x.dtype == dtype)
    return x;
  Place to = builder_.temporary(dtype, x.sizes);
  builder_.copy(x, to);
  return to;
}

Place flatPlace(const Place &place, BucketBuilder &builder) {
  Place flat = densePlace(place, builder);
  flat.sizes = {flat.type().numElements()};
  flat.strides = {1};
  return flat;
}

} // namespace cgc::backend
