// Arithmetic on parameters.
#include "passes/select/parameter_math.h"

#include "ir/op_views.h"
#include "passes/constants.h"
#include "passes/match.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

namespace cgc::passes {

namespace {
/// The smallest factor of a weight of f16 that leaves weights of usual size normal numbers.
constexpr double kLeastFactor = 0x1p-6;
} // namespace

ir::Value *ParameterMath::operator()(ir::OpKind op, std::vector<ir::Arg> args) const {
  return rewriter_.create(op, std::move(args), node_, &node_)->result();
}

ir::Value *ParameterMath::wide(const ir::Arg &parameter) const {
  const auto rounded = ir::ToOp::of(parameter.value());
  if (rounded && rounded->self()->tensor().dtype == DType::F64)
    return rounded->self();
  return (*this)(ir::OpKind::To, {parameter, DType::F64, ir::Arg()});
}

ir::Value *ParameterMath::narrow(ir::Value *value, DType dtype) const {
  return (*this)(ir::OpKind::To, {value, dtype, ir::Arg()});
}

bool keepsPrecision(const ir::Node &product, ir::Value *factor, DType dtype) {
  if (dtype != DType::F16)
    return true;
  const ir::Value *result = product.result();
  const ir::Node *user = result->hasOneUse() ? *result->users().begin() : nullptr;
  if (user && !operandsOfSum(*user).empty() &&
      user->result()->tensor().sizes == result->tensor().sizes)
    return true;
  const auto factors = elementsOf(factor);
  return factors &&
         llvm::all_of(*factors, [](double f) { return f == 0 || std::abs(f) >= kLeastFactor; });
}

} // namespace cgc::passes
