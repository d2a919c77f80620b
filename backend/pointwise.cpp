// Pointwise ops: maps each op to a function of the kernels elementwise, compare or where, with its
// operands in the order that the kernel takes.
#include "backend/pointwise.h"

#include "backend/kernels.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>

namespace cgc::backend {
namespace {

/// The row of elementwise_ops.def with the name of an op's row in ops.def, without its namespace;
/// nullopt if there is none.
std::optional<ElementwiseOp> namesake(ir::OpKind op) {
  static constexpr llvm::StringLiteral kOps[] = {
#define CGC_OP(Enum, text) #Enum,
#include "ir/ops.def"
  };
  static constexpr llvm::StringLiteral kFunctions[] = {
#define CGC_ELEMENTWISE_OP(Name, operands) #Name,
#include "runtime/kernels/pointwise/elementwise_ops.def"
  };
  llvm::StringRef name = kOps[static_cast<unsigned>(op)];
  name.consume_front("Cgc");
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
  case ir::OpKind::CgcGeluBackward:
    return node.arg("approximate").as<std::string>() == "none"
               ? std::optional(ElementwiseOp::GeluBackward)
               : std::nullopt;
  case ir::OpKind::Div:
    return node.arg("rounding_mode").isNone() ? std::optional(ElementwiseOp::Div) : std::nullopt;
  case ir::OpKind::Softplus:
    return node.arg("beta").asNumber() == 1.0 && node.arg("threshold").asNumber() == 20.0
               ? std::optional(ElementwiseOp::Softplus)
               : std::nullopt;
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

/// Launches |x| < infinity.
bool launchIsFinite(const ir::Node &node, BucketBuilder &builder) {
  const Place x = builder.place(node.arg("self").value());
  const Place magnitude = builder.temporary(x.dtype, x.sizes);
  return launchElementwise(ElementwiseOp::Abs, x, std::nullopt, 0, magnitude, builder) &&
         launchCompare(CompareOp::Lt, magnitude, std::nullopt,
                       std::numeric_limits<double>::infinity(), builder.allocate(*node.result()),
                       builder);
}

/// Launches not, and, or of bools.
bool launchLogic(const ir::Node &node, BucketBuilder &builder) {
  for (const ir::Arg &arg : node.args())
    if (!arg.isValue() || arg.value()->tensor().dtype != DType::Bool)
      return false;
  const Place x = builder.place(node.arg("self").value()),
              result = builder.allocate(*node.result());
  if (node.is(ir::OpKind::BitwiseNot) || node.is(ir::OpKind::LogicalNot))
    return launchCompare(CompareOp::Eq, x, std::nullopt, 0, result, builder);
  const Place z = builder.place(node.arg("other").value());
  return node.is(ir::OpKind::BitwiseAnd) || node.is(ir::OpKind::LogicalAnd)
             ? launchWhere(x, z, 0.0, result, builder)
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
  // A double may not represent the product of two integers.
  if (!x->isValue() ||
      (alpha != 1 && (scaled != z || z->isValue() || !isFloating(node.result()->tensor().dtype))))
    return false;
  const std::optional<Operand> second = operand(*z, builder);
  if (!second)
    return false;
  const auto *tensor = std::get_if<Place>(&*second);
  return launchElementwise(
      op, builder.place(x->value()), tensor ? std::optional(*tensor) : std::nullopt,
      tensor ? 0 : std::get<double>(*second) * alpha, builder.allocate(*node.result()), builder);
}

/// Launches a clamp between numbers: a maximum, then a minimum.
bool launchClamp(const ir::Node &node, BucketBuilder &builder) {
  const ir::Arg &least = node.arg("min"), &most = node.arg("max");
  if (least.isValue() || most.isValue())
    return false;
  Place x = builder.place(node.arg("self").value());
  const Place result = builder.allocate(*node.result());
  const auto bound = [&](ElementwiseOp op, const ir::Arg &number, const Place &to) {
    return launchElementwise(op, x, std::nullopt, *number.asNumber(), to, builder);
  };
  if (most.isNone())
    return bound(ElementwiseOp::Maximum, least, result);
  if (!least.isNone()) {
    const Place bounded = builder.temporary(result.dtype, result.sizes);
    if (!bound(ElementwiseOp::Maximum, least, bounded))
      return false;
    x = bounded;
  }
  return bound(ElementwiseOp::Minimum, most, result);
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
  if (node.is(ir::OpKind::Clamp))
    return launchClamp(node, builder);
  if (std::optional<CompareOp> op = comparison(node))
    return launchComparison(node, *op, builder);
  switch (node.op()) {
  case ir::OpKind::BitwiseNot:
  case ir::OpKind::BitwiseAnd:
  case ir::OpKind::BitwiseOr:
  case ir::OpKind::LogicalNot:
  case ir::OpKind::LogicalAnd:
  case ir::OpKind::LogicalOr:
    return launchLogic(node, builder);
  case ir::OpKind::IsFinite:
    return launchIsFinite(node, builder);
  default:
    return false;
  }
}

} // namespace cgc::backend
