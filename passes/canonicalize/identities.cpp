// Identity patterns: drop nodes whose result equals their input.
#include "passes/canonicalize/patterns.h"

namespace cgc::passes {
namespace {

using ir::OpKind;

bool isConstantNumber(const ir::Arg &arg, double number) {
  auto value = arg.asNumber();
  return value && *value == number;
}

/// Returns true if the arithmetic of `node` returns argument 0 bit for bit.
bool isNeutral(const ir::Node &node) {
  switch (node.op()) {
  case OpKind::Mul:
  case OpKind::Div:
    return isConstantNumber(node.arg("other"), 1) &&
           (node.op() == OpKind::Mul || node.arg("rounding_mode").isNone());
  case OpKind::Sub:
    return isConstantNumber(node.arg("other"), 0);
  case OpKind::Add: // -0.0 + 0 is +0.0
    return isConstantNumber(node.arg("other"), 0) && !isFloating(node.result()->tensor().dtype);
  case OpKind::ConstantPad:
    return llvm::all_of(node.arg("pad").list(),
                        [](const ir::Arg &pad) { return pad == ir::Arg(int64_t{0}); });
  default:
    return false;
  }
}

/// Returns true if every value of `from` is representable in `to`.
bool isLossless(DType from, DType to) {
  if (from == to)
    return true;
  switch (from) {
  case DType::F16:
  case DType::BF16:
    return to == DType::F32 || to == DType::F64;
  case DType::F32:
    return to == DType::F64;
  case DType::I32:
    return to == DType::I64 || to == DType::F64;
  case DType::Bool:
    return true;
  default:
    return false;
  }
}

/// Returns the type of `expand` after its input has been cast to the dtype of `to`.
ir::TensorType expandedType(const ir::Node &expand, const ir::Node &to) {
  ir::TensorType type = to.result()->tensor();
  const ir::TensorType &from = expand.arg(0).value()->tensor();
  ir::Dims dense = ir::contiguousStrides(from.sizes);
  int64_t added = type.rank() - from.rank();
  for (int64_t dim = 0; dim < type.rank(); ++dim)
    type.strides[dim] =
        dim < added || from.sizes[dim - added] != type.sizes[dim] ? 0 : dense[dim - added];
  return type;
}

} // namespace

bool dropIdentity(ir::Node &node, const ir::UseMap &, ir::GraphRewriter &rewriter) {
  if (node.args().empty() || node.numResults() != 1 || !node.arg(0).isValue())
    return false;
  ir::Value *input = node.arg(0).value();
  const ir::TensorType &type = node.result()->tensor();
  bool same = sameLayout(input->tensor(), type);
  if (same && ((isView(node) && layoutOf(node.result()).offset == layoutOf(input).offset) ||
               isNeutral(node))) {
    replaceAllUsesWith(rewriter, node.result(), input);
    return true;
  }
  if (node.is(OpKind::To))
    if (ir::Node *first = definingOp(input, OpKind::To)) {
      ir::Value *original = first->arg(0).value();
      if (isLossless(original->tensor().dtype, input->tensor().dtype)) {
        ir::Node *cast =
            rewriter.create(OpKind::To, {original, type.dtype, ir::Arg()}, node, &node);
        replaceAllUsesWith(rewriter, node.result(), cast->result());
        return true;
      }
    }
  if (node.is(OpKind::Rsub) && node.arg(1).isValue()) {
    ir::Node *sub =
        rewriter.create(OpKind::Sub, {node.arg(1), node.arg(0), node.arg(2)}, node, &node);
    replaceAllUsesWith(rewriter, node.result(), sub->result());
    return true;
  }
  return false;
}

bool castBeforeExpand(ir::Node &node, const ir::UseMap &, ir::GraphRewriter &rewriter) {
  if (!node.is(OpKind::To) || isView(node))
    return false;
  ir::Node *expand = definingOp(node.arg(0).value(), OpKind::Expand);
  if (!expand || !acceptsStrides(node.result(), expandedType(*expand, node)))
    return false;
  ir::Node *cast =
      rewriter.create(OpKind::To, {expand->arg(0), node.arg(1), node.arg(2)}, node, &node);
  ir::Node *expanded =
      rewriter.create(OpKind::Expand, {cast->result(), expand->arg(1)}, node, &node);
  replaceAllUsesWith(rewriter, node.result(), expanded->result());
  return true;
}

} // namespace cgc::passes
