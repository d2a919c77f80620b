// precisionOf: the lists of PyTorch's autocast.
#include "passes/op_precision.h"

namespace cgc::passes {

OpPrecision precisionOf(ir::OpKind op) {
  using ir::OpKind;
  switch (op) {
  case OpKind::Linear:
  case OpKind::Matmul:
  case OpKind::Addmm:
  case OpKind::Baddbmm:
  case OpKind::Einsum:
  case OpKind::Conv1d:
  case OpKind::Conv2d:
  case OpKind::Conv3d:
  case OpKind::ConvTranspose2d:
  case OpKind::ConvTranspose3d:
  case OpKind::ScaledDotProductAttention:
  case OpKind::CgcAttention:
    return OpPrecision::Lower;
  case OpKind::Acos:
  case OpKind::Asin:
  case OpKind::Cosh:
  case OpKind::Sinh:
  case OpKind::Tan:
  case OpKind::Exp:
  case OpKind::Expm1:
  case OpKind::Log:
  case OpKind::Log10:
  case OpKind::Log1p:
  case OpKind::Log2:
  case OpKind::LogSumExp:
  case OpKind::Pow:
  case OpKind::Reciprocal:
  case OpKind::Rsqrt:
  case OpKind::Softplus:
  case OpKind::Sum:
  case OpKind::Prod:
  case OpKind::Cumsum:
  case OpKind::Softmax:
  case OpKind::LogSoftmax:
  case OpKind::LayerNorm:
  case OpKind::GroupNorm:
  case OpKind::LinalgVectorNorm:
  case OpKind::Cdist:
  case OpKind::Pdist:
    return OpPrecision::Full;
  default:
    return OpPrecision::Either;
  }
}

} // namespace cgc::passes
