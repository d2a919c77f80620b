// Pointwise ops: maps each op to a function of the kernels elementwise, compare or where, with its
// operands in the order that the kernel takes.
#include "backend/pointwise.h"

#include "backend/kernels.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::backend {
namespace {

/// The row of elementwise_ops.def with the name of an op's row in ops.def; nullopt if there is
/// none.
std::optional<ElementwiseOp> namesake(ir::OpKind op) {
  static constexpr llvm::StringLiteral kOps[] = {
#define CGC_OP(Enum, text) #Enum,
#include "ir/ops.def"
  };
  static constexpr llvm::StringLiteral kFunctions[] = {
#define CGC_ELEMENTWISE_OP(Name, operands) #Name,
#include "runtime/kernels/pointwise/elementwise_ops.def"
  };
  const llvm::StringRef name = kOps[static_cast<unsigned>(op)];
  for (const auto &[i, function] : llvm::enumerate(kFunctions))
    if (function == name)
      return static_cast<ElementwiseOp>(i);
  return std::nullopt;
}

/// The function that elementwise computes for this op, of argument 0, or of 0 and 1 in this order.
std::optional<ElementwiseOp> functionOf(const ir::Node &node) {
  switch (node.op()) {
  case ir::OpKind::Gelu:
    return node.arg("approximate").as<std::string>() == "tanh" ? ElementwiseOp::GeluTanh
                                                               : ElementwiseOp::Gelu;
  case ir::OpKind::GeluBackward:
    return node.arg("approximate").as<std::string>() == "none"
               ? std::optional(ElementwiseOp::GeluBackward)
               : std::nullopt;
  case ir::OpKind::Div:
    return node.arg("rounding_mode").isNone() ? std::optional(ElementwiseOp::Div) : std::nullopt;
  case ir::OpKind::Rsub:
    return ElementwiseOp::ReverseSub;
  case ir::OpKind::ClampMin:
    return ElementwiseOp::Maximum;
  default:
    return namesake(node.op());
  }
}

/// The op that gives the same result with its operands swapped.
std::optional<ElementwiseOp> withSwappedOperands(ElementwiseOp op) {
  switch (op) {
  case ElementwiseOp::Sub:
    return ElementwiseOp::ReverseSub;
  case ElementwiseOp::ReverseSub:
    return ElementwiseOp::Sub;
  case ElementwiseOp::Div:
    return ElementwiseOp::ReverseDiv;
  case ElementwiseOp::ReverseDiv:
    return ElementwiseOp::Div;
  case ElementwiseOp::Pow:
    return std::nullopt;
  default:
    return op;
  }
}

/// The comparison of both operands, in this order.
std::optional<CompareOp> comparison(const ir::Node &node) {
  switch (node.op()) {
  case ir::OpKind::Eq:
    return CompareOp::Eq;
  case ir::OpKind::Ne:
    return CompareOp::Ne;
  case ir::OpKind::Lt:
    return CompareOp::Lt;
  case ir::OpKind::Le:
    return CompareOp::Le;
  case ir::OpKind::Gt:
    return CompareOp::Gt;
  case ir::OpKind::Ge:
    return CompareOp::Ge;
  default:
    return std::nullopt;
  }
}

/// The comparison that gives the same result with its operands swapped.
CompareOp withSwappedOperands(CompareOp op) {
  switch (op) {
  case CompareOp::Eq:
  case CompareOp::Ne:
    return op;
  case CompareOp::Lt:
    return CompareOp::Gt;
  case CompareOp::Le:
    return CompareOp::Ge;
  case CompareOp::Gt:
    return CompareOp::Lt;
  case CompareOp::Ge:
    return CompareOp::Le;
  }
  llvm_unreachable("all comparisons have been named");
}

bool launchComparison(const ir::Node &node, CompareOp op, BucketBuilder &builder) {
  const ir::Arg *x = &node.arg("self"), *z = &node.arg("other");
  if (!x->isValue()) {
    op = withSwappedOperands(op);
    std::swap(x, z);
  }
  const std::optional<Operand> left = operand(*x, builder), right = operand(*z, builder);
  if (!left || !right)
    return false;
  const auto *tensor = std::get_if<Place>(&*left), *other = std::get_if<Place>(&*right);
  // LibTorch compares integers with a float as floats.
  if (!tensor || (!isFloating(tensor->dtype) && z->is<double>()))
    return false;
  return launchCompare(op, *tensor, other ? std::optional(*other) : std::nullopt,
                       other ? 0 : std::get<double>(*right), builder.allocate(*node.result()),
                       builder);
}

/// Launches not, and, or of bools.
bool launchLogic(const ir::Node &node, BucketBuilder &builder) {
  for (const ir::Arg &arg : node.args())
    if (!arg.isValue() || arg.value()->tensor().dtype != DType::Bool)
      return false;
  const Place x = builder.place(node.arg("self").value()),
              result = builder.allocate(*node.result());
  if (node.is(ir::OpKind::BitwiseNot))
    return launchCompare(CompareOp::Eq, x, std::nullopt, 0, result, builder);
  const Place z = builder.place(node.arg("other").value());
  return node.is(ir::OpKind::BitwiseAnd) ? launchWhere(x, z, 0.0, result, builder)
                                         : launchWhere(x, 1.0, z, result, builder);
}

/// The operands are the first two arguments of the op's schema.
bool launchBinary(const ir::Node &node, ElementwiseOp op, BucketBuilder &builder) {
  const ir::Arg *x = &node.args()[0], *z = &node.args()[1];
  // add, sub and rsub scale one operand.
  const ir::Arg *scaled = nullptr;
  double alpha = 1;
  if (node.is(ir::OpKind::Add) || node.is(ir::OpKind::Sub) || node.is(ir::OpKind::Rsub)) {
    scaled = node.is(ir::OpKind::Rsub) ? x : z;
    alpha = *node.arg("alpha").asNumber();
  }
  if (!x->isValue()) {
    std::optional<ElementwiseOp> other = withSwappedOperands(op);
    if (!other)
      return false;
    op = *other;
    std::swap(x, z);
  }
  if (!x->isValue() || (alpha != 1 && (scaled != z || z->isValue())))
    return false;
  std::optional<Place> tensor;
  double number = 0;
  if (z->isValue())
    tensor = builder.place(z->value());
  else
    number = *z->asNumber() * alpha;
  return launchElementwise(op, builder.place(x->value()), tensor, number,
                           builder.allocate(*node.result()), builder);
}

} // namespace

bool launchPointwise(const ir::Node &node, BucketBuilder &builder) {
  if (builder.target() != DeviceKind::Cuda)
    return false;
  if (std::optional<ElementwiseOp> op = functionOf(node))
    return isBinary(*op)
               ? launchBinary(node, *op, builder)
               : launchElementwise(*op, builder.place(node.arg("self").value()), std::nullopt, 0,
                                   builder.allocate(*node.result()), builder);
  if (std::optional<CompareOp> op = comparison(node))
    return launchComparison(node, *op, builder);
  if (node.is(ir::OpKind::BitwiseNot) || node.is(ir::OpKind::BitwiseAnd) ||
      node.is(ir::OpKind::BitwiseOr))
    return launchLogic(node, builder);
  return false;
}

} // namespace cgc::backend
