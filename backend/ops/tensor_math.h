// TensorMath: formulas as calls of LibTorch, each into scratch memory, for ops of several steps.
#pragma once

#include "backend/lowering.h"

namespace cgc::backend {

/// Adds one call of LibTorch for each function. A result has the dtype and the sizes of the first
/// tensor and goes to `result`, if it is given, else to a temporary. Operands without dimensions
/// are numbers: they do not change the dtype of a result with dimensions.
class TensorMath final {
public:
  explicit TensorMath(BucketBuilder &builder) : builder_(builder) {}

  /// x + factor z.
  Place add(const Place &x, const Place &z, const ir::Arg &factor = 1,
            std::optional<Place> result = {});
  Place sub(const Place &x, const Place &z, std::optional<Place> result = {});
  Place mul(const Place &x, const Place &z, std::optional<Place> result = {});
  Place div(const Place &x, const Place &z, std::optional<Place> result = {});
  Place sqrt(const Place &x, std::optional<Place> result = {});
  /// x + weight (end - x).
  Place lerp(const Place &x, const Place &end, double weight, std::optional<Place> result = {});
  /// x + factor y z.
  Place addcmul(const Place &x, const Place &y, const Place &z, double factor,
                std::optional<Place> result = {});
  /// x where the condition, bools, is true, else z.
  Place where(const Place &condition, const Place &x, const Place &z,
              std::optional<Place> result = {});
  Place bitwiseAnd(const Place &x, const Place &z, std::optional<Place> result = {});
  Place bitwiseXor(const Place &x, const Place &z, std::optional<Place> result = {});
  Place rightShift(const Place &x, const Place &bits, std::optional<Place> result = {});
  /// base^exponent.
  Place power(double base, const Place &exponent);
  /// Whether x equals the number.
  Place equal(const Place &x, int64_t number);
  /// A tensor without dimensions.
  Place number(double value, DType dtype) { return scalarTensor(value, dtype, builder_); }
  Place number(int64_t value) { return scalarTensor(value, DType::I64, builder_); }
  /// `x` in this dtype: itself, or a converted copy.
  Place converted(const Place &x, DType dtype);

private:
  Place call(const char *op, const char *overload, std::vector<AtenArg> args, const Place &like,
             const std::optional<Place> &result);
  AtenArg arg(const Place &place) { return builder_.tensor(place); }

  BucketBuilder &builder_;
};

/// `place`, or a dense copy of it, as a tensor of one dimension.
Place flatPlace(const Place &place, BucketBuilder &builder);

} // namespace cgc::backend
